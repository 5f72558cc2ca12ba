//! What a schema becomes: nodes and rules in two flat lists, linked by index.

use serde_json::{Number, Value};

use super::number::Decimal;
use super::pattern::Pattern;

/// One schema of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) u32);

/// `true`, and every empty schema.
pub(super) const ALWAYS: NodeId = NodeId(0);
/// `false`: also recognised by its id, for a better message about an unknown member.
pub(super) const NEVER: NodeId = NodeId(1);

/// The rules of one node: a stretch of the arena's list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    pub(super) start: u32,
    pub(super) end: u32,
}

#[derive(Debug)]
pub(super) struct Arena {
    pub(super) nodes: Box<[Node]>,
    pub(super) rules: Box<[Rule]>,
    pub(super) root: NodeId,
}

impl Arena {
    /// The rules of `id`. An index outside the arena cannot be made; if it were, nothing would fit.
    pub(super) fn rules(&self, id: NodeId) -> &[Rule] {
        const NOTHING: &[Rule] = &[Rule::Never];
        self.nodes
            .get(id.0 as usize)
            .and_then(|node| self.rules.get(node.start as usize..node.end as usize))
            .unwrap_or(NOTHING)
    }
}

/// One keyword, or the few that only mean something together. 24 bytes: what is bigger is boxed.
#[derive(Debug)]
pub(super) enum Rule {
    Never,
    Type(Types),
    Const(Box<Value>),
    Enum(Box<[Value]>),
    Minimum(Number),
    ExclusiveMinimum(Number),
    Maximum(Number),
    ExclusiveMaximum(Number),
    MultipleOf(Box<(Number, Decimal)>),
    MinLength(u64),
    MaxLength(u64),
    Pattern(Box<Pattern>),
    MinProperties(u64),
    MaxProperties(u64),
    Required(Names),
    DependentRequired(Box<[(Box<str>, Names)]>),
    Members(Box<Members>),
    PropertyNames(NodeId),
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    Items(Box<Items>),
    Contains(Box<Contains>),
    AllOf(Box<[NodeId]>),
    AnyOf(Box<[NodeId]>),
    OneOf(Box<[NodeId]>),
    Not(NodeId),
    If(Box<Condition>),
    DependentSchemas(NamedNodes),
    Ref(NodeId),
}

pub(super) type Names = Box<[Box<str>]>;
pub(super) type NamedNodes = Box<[(Box<str>, NodeId)]>;

/// `properties`, `patternProperties` and `additionalProperties`: the third means "what neither of the others took".
#[derive(Debug)]
pub(super) struct Members {
    /// Sorted by name, for a binary search.
    pub(super) named: NamedNodes,
    pub(super) matched: Box<[(Pattern, NodeId)]>,
    pub(super) additional: NodeId,
}

/// `prefixItems` and `items`: the second means "what the first did not take".
#[derive(Debug)]
pub(super) struct Items {
    pub(super) prefix: Box<[NodeId]>,
    pub(super) rest: NodeId,
}

#[derive(Debug)]
pub(super) struct Contains {
    pub(super) node: NodeId,
    pub(super) min: u64,
    pub(super) max: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Condition {
    pub(super) condition: NodeId,
    pub(super) then: NodeId,
    pub(super) otherwise: NodeId,
}

impl Rule {
    /// The nodes that this rule applies to the same value, without going into it.
    pub(super) fn in_place(&self) -> Vec<NodeId> {
        match self {
            Self::AllOf(nodes) | Self::AnyOf(nodes) | Self::OneOf(nodes) => nodes.to_vec(),
            Self::Not(node) | Self::Ref(node) => vec![*node],
            Self::If(rule) => vec![rule.condition, rule.then, rule.otherwise],
            Self::DependentSchemas(members) => members.iter().map(|(_, node)| *node).collect(),
            _ => Vec::new(),
        }
    }

    /// Cheap and telling rules first: a wrong type is said before a missing member, that before a failed `anyOf`.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Never | Self::Type(_) => 0,
            Self::Required(_) | Self::DependentRequired(_) => 2,
            Self::Members(_) | Self::Items(_) | Self::PropertyNames(_) => 3,
            Self::UniqueItems | Self::Contains(_) | Self::Ref(_) => 4,
            Self::AllOf(_) | Self::AnyOf(_) | Self::OneOf(_) | Self::Not(_) => 5,
            Self::If(_) | Self::DependentSchemas(_) => 5,
            _ => 1,
        }
    }
}

/// A set of the seven type words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    const WORDS: [&'static str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

    /// The set of one word, or nothing when the word is none of the seven.
    pub(super) fn word(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|bit| Self(1 << bit))
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn admits(self, value: &Value) -> bool {
        let bits = match value {
            Value::Null => 1,
            Value::Bool(_) => 1 << 1,
            Value::Object(_) => 1 << 2,
            Value::Array(_) => 1 << 3,
            Value::Number(number) if super::number::is_integer(number) => 1 << 4 | 1 << 6,
            Value::Number(_) => 1 << 4,
            Value::String(_) => 1 << 5,
        };
        self.0 & bits != 0
    }

    pub(super) fn names(self) -> String {
        let held = Self::WORDS.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        held.map(|(_, word)| *word).collect::<Vec<_>>().join(" or ")
    }
}
