//! Where a `$ref` leads: within the document only, and never round in a circle.

use std::ptr;

use serde_json::Value;

use super::node::{Arena, NodeId};
use super::push_token;

/// Most schemas applied to one value through `$ref`, `allOf` and the like before the schema goes into the value.
pub const MAX_IN_PLACE_DEPTH: u32 = 64;

/// The value that `reference` names in `root`: `#`, or `#/…` with the escapes of RFC 6901 and of URIs.
pub(super) fn target<'s>(root: &'s Value, reference: &str) -> Result<&'s Value, &'static str> {
    const LOCAL: &str = "only references within this schema are followed: \"#\" or \"#/…\"";
    let fragment = reference.strip_prefix('#').ok_or(LOCAL)?;
    let pointer = percent_decoded(fragment).ok_or("has a broken % escape")?;
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(LOCAL);
    }
    if pointer.split('~').skip(1).any(|after| !after.starts_with(['0', '1'])) {
        return Err("has a ~ that is neither ~0 nor ~1");
    }
    root.pointer(&pointer).ok_or("points to nothing")
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// The JSON pointer to the very value `needle` inside `root`. Searched when an error needs it, so that compiling
/// keeps no pointer for each schema. The depth of `root` has been checked.
pub(super) fn pointer_to(root: &Value, needle: *const Value) -> String {
    let mut pointer = String::new();
    find(root, needle, &mut pointer);
    pointer
}

fn find(value: &Value, needle: *const Value, pointer: &mut String) -> bool {
    if ptr::eq(value, needle) {
        return true;
    }
    let mark = pointer.len();
    let mut enter = |token: &str, value| {
        push_token(pointer, token);
        let found = find(value, needle, pointer);
        if !found {
            pointer.truncate(mark);
        }
        found
    };
    match value {
        Value::Object(members) => members.iter().any(|(name, member)| enter(name, member)),
        Value::Array(items) => items.iter().enumerate().any(|(index, item)| enter(&index.to_string(), item)),
        _ => false,
    }
}

/// A node that would be applied for ever, or through too many others.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Endless {
    Circle(NodeId),
    TooDeep(NodeId),
}

/// Peels off nodes that lead nowhere else in place, until none are left or the rest are in circles.
pub(super) fn check_endings(arena: &Arena) -> Result<(), Endless> {
    let count = arena.nodes.len();
    let next: Vec<Vec<usize>> = (0_u32..)
        .take(count)
        .map(|id| {
            arena.rules(NodeId(id)).iter().flat_map(|rule| rule.in_place()).map(|to| to.0 as usize).collect()
        })
        .collect();
    let mut before = vec![Vec::new(); count];
    for (from, targets) in next.iter().enumerate() {
        targets.iter().for_each(|to| before[*to].push(from));
    }
    let mut open: Vec<usize> = next.iter().map(Vec::len).collect();
    let mut heights = vec![0_u32; count];
    let mut ended: Vec<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    while let Some(node) = ended.pop() {
        for from in &before[node] {
            heights[*from] = heights[*from].max(heights[node] + 1);
            open[*from] -= 1;
            if open[*from] == 0 {
                ended.push(*from);
            }
        }
    }
    let id = |index: usize| NodeId(u32::try_from(index).unwrap_or(u32::MAX));
    if let Some(start) = (0..count).find(|node| open[*node] > 0) {
        // Each that is left leads to another that is left: as many steps as there are nodes end inside a circle.
        let step = |node: usize, _| next[node].iter().copied().find(|to| open[*to] > 0).unwrap_or(node);
        return Err(Endless::Circle(id((0..count).fold(start, step))));
    }
    let deep = heights.iter().position(|height| *height > MAX_IN_PLACE_DEPTH);
    deep.map_or(Ok(()), |node| Err(Endless::TooDeep(id(node))))
}
