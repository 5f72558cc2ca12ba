//! From a JSON value to the arena: every subschema once, then the references between them.

use std::collections::HashMap;
use std::io;

use serde_json::Value;

use super::SchemaError;
use super::node::{ALWAYS, Arena, NEVER, Node, NodeId, Rule};
use super::pattern::{MAX_PATTERNS_BYTES, Pattern};
use super::references::{Endless, MAX_IN_PLACE_DEPTH, check_endings, pointer_to, target};

/// Most bytes of a schema as compact JSON: a manifest holds many, and each is read at every registration.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Most schemas inside one: what 64 KiB can hold of honest ones.
pub const MAX_SUBSCHEMAS: usize = 2048;
/// Deepest JSON nesting of a schema, and so the deepest recursion that reads it.
pub const MAX_SCHEMA_DEPTH: usize = 64;

pub(super) fn compile(schema: &Value) -> Result<Arena, SchemaError> {
    let whole = |message| SchemaError { pointer: String::new(), message };
    // Depth first: the writer that counts the bytes recurses, too.
    if !is_shallow(schema, MAX_SCHEMA_DEPTH) {
        return Err(whole(format!("is nested deeper than {MAX_SCHEMA_DEPTH} levels")));
    }
    if serde_json::to_writer(Room(MAX_SCHEMA_BYTES), schema).is_err() {
        return Err(whole(format!("is longer than {MAX_SCHEMA_BYTES} bytes")));
    }
    let mut compiler = Compiler {
        root: schema,
        nodes: vec![Node::default(), Node { start: 0, end: 1 }],
        rules: vec![Rule::Never],
        ids: HashMap::new(),
        references: Vec::new(),
        subschemas: 0,
        patterns_bytes: 0,
    };
    let root = compiler.schema(schema)?;
    compiler.link(root)
}

fn is_shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(_) | Value::Array(_) if levels == 0 => false,
        Value::Object(members) => members.values().all(|member| is_shallow(member, levels - 1)),
        Value::Array(items) => items.iter().all(|item| is_shallow(item, levels - 1)),
        _ => true,
    }
}

/// Takes as many bytes as there is room for, and forgets them.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Compiler<'s> {
    pub(super) root: &'s Value,
    nodes: Vec<Node>,
    rules: Vec<Rule>,
    /// Which node a subschema became, by its address: what is not here is no schema, whatever it looks like.
    ids: HashMap<*const Value, NodeId>,
    /// Each `$ref` with its target. Until all schemas have ids, `Rule::Ref` holds the index in this list.
    references: Vec<(&'s Value, &'s Value)>,
    subschemas: usize,
    patterns_bytes: usize,
}

impl<'s> Compiler<'s> {
    pub(super) fn refuse<T>(&self, at: *const Value, message: impl Into<String>) -> Result<T, SchemaError> {
        Err(SchemaError { pointer: pointer_to(self.root, at), message: message.into() })
    }

    pub(super) fn schema(&mut self, schema: &'s Value) -> Result<NodeId, SchemaError> {
        self.subschemas += 1;
        if self.subschemas > MAX_SUBSCHEMAS {
            return self.refuse(schema, format!("is one more than {MAX_SUBSCHEMAS} subschemas"));
        }
        let id = match schema {
            Value::Bool(true) => ALWAYS,
            Value::Bool(false) => NEVER,
            Value::Object(keywords) if keywords.is_empty() => ALWAYS,
            Value::Object(keywords) => {
                let id = NodeId(index(self.nodes.len()));
                self.nodes.push(Node::default());
                let mut rules = self.keywords(schema, keywords)?;
                rules.sort_by_key(Rule::rank);
                let start = index(self.rules.len());
                self.rules.append(&mut rules);
                self.nodes[id.0 as usize] = Node { start, end: index(self.rules.len()) };
                id
            }
            _ => return self.refuse(schema, "a schema is an object or a boolean"),
        };
        self.ids.insert(schema, id);
        Ok(id)
    }

    pub(super) fn reference(&mut self, value: &'s Value) -> Result<Rule, SchemaError> {
        let Some(text) = value.as_str() else { return self.refuse(value, "is not a string") };
        match target(self.root, text) {
            Ok(target) => {
                let slot = NodeId(index(self.references.len()));
                self.references.push((value, target));
                Ok(Rule::Ref(slot))
            }
            Err(reason) => self.refuse(value, reason),
        }
    }

    /// Compiles the pattern `source`, which stands at `at`.
    pub(super) fn pattern(&mut self, at: &'s Value, source: &str) -> Result<Pattern, SchemaError> {
        let pattern = match Pattern::compile(source) {
            Ok(pattern) => pattern,
            Err(reason) => return self.refuse(at, format!("unusable pattern: {reason}")),
        };
        self.patterns_bytes += pattern.bytes();
        if self.patterns_bytes > MAX_PATTERNS_BYTES {
            return self
                .refuse(at, format!("all patterns together need more than {MAX_PATTERNS_BYTES} bytes"));
        }
        Ok(pattern)
    }

    fn link(mut self, root: NodeId) -> Result<Arena, SchemaError> {
        let mut rules = std::mem::take(&mut self.rules);
        for rule in &mut rules {
            let Rule::Ref(slot) = rule else { continue };
            let (at, target) = self.references[slot.0 as usize];
            match self.ids.get(&std::ptr::from_ref(target)) {
                Some(id) => *slot = *id,
                None => return self.refuse(at, "points to something that is no schema"),
            }
        }
        let nodes = std::mem::take(&mut self.nodes).into();
        let arena = Arena { nodes, rules: rules.into(), root };
        let (node, message) = match check_endings(&arena) {
            Ok(()) => return Ok(arena),
            Err(Endless::Circle(node)) => {
                (node, "refers to itself for the same value, without end".to_owned())
            }
            Err(Endless::TooDeep(node)) => (
                node,
                format!("applies more than {MAX_IN_PLACE_DEPTH} schemas inside each other to one value"),
            ),
        };
        let at =
            self.ids.iter().find(|(_, id)| **id == node).map_or(std::ptr::from_ref(self.root), |(at, _)| *at);
        self.refuse(at, message)
    }
}

/// Indices stay far below 2^32: [`MAX_SCHEMA_BYTES`] bounds the rules, [`MAX_SUBSCHEMAS`] the nodes.
fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
