//! What changed between two snapshots, field by field.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::file::{Row, Rows};
use crate::context::Show;
use crate::page::{Page, Tone};

/// Longest value on a page in letters; the JSON has all of it.
const MAX_SHOWN_LETTERS: usize = 120;

/// Everything that differs.
#[derive(Debug, Serialize)]
pub(super) struct Differences {
    same: bool,
    apps: Kind,
    capabilities: Kind,
}

/// What differs among rows of one kind, each list sorted by id.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Kind {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<Changed>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Changed {
    id: String,
    fields: Vec<Field>,
}

/// One field, before and now; a field of a part is named `part.field`.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Field {
    field: String,
    old: Value,
    new: Value,
}

impl Differences {
    pub(super) fn between(old: &Rows, new: &Rows) -> Self {
        // What an application offers is told by the capabilities themselves.
        let apps = Kind::between(&old.apps, &new.apps, &["capabilities"]);
        let capabilities = Kind::between(&old.capabilities, &new.capabilities, &[]);
        Self { same: apps.is_empty() && capabilities.is_empty(), apps, capabilities }
    }
}

impl Kind {
    fn between(old: &BTreeMap<String, Row>, new: &BTreeMap<String, Row>, without: &[&str]) -> Self {
        let only = |one: &BTreeMap<String, Row>, other: &BTreeMap<String, Row>| {
            one.keys().filter(|id| !other.contains_key(*id)).cloned().collect()
        };
        let changed = old.iter().filter_map(|(id, before)| {
            let mut fields = Vec::new();
            compare("", before, new.get(id)?, without, &mut fields);
            (!fields.is_empty()).then(|| Changed { id: id.clone(), fields })
        });
        Self { added: only(new, old), removed: only(old, new), changed: changed.collect() }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn show(&self, page: &mut Page, what: &str) {
        for id in &self.added {
            page.marked(Tone::Good, "+", &format!(" {what} {id}"));
        }
        for id in &self.removed {
            page.marked(Tone::Bad, "-", &format!(" {what} {id}"));
        }
        for changed in &self.changed {
            page.marked(Tone::Careful, "~", &format!(" {what} {}", changed.id));
            for Field { field, old, new } in &changed.fields {
                page.line(Tone::Plain, format_args!("    {field}: {} -> {}", shown(old), shown(new)));
            }
        }
    }

    fn count(&self) -> String {
        format!("{} added, {} removed, {} changed", self.added.len(), self.removed.len(), self.changed.len())
    }
}

/// A schema is one value, however it is built; the other objects of a row are parts with fields of their own.
fn compare(within: &str, old: &Row, new: &Row, without: &[&str], fields: &mut Vec<Field>) {
    let absent = Value::Null;
    let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for name in names.into_iter().filter(|name| !without.contains(&name.as_str())) {
        let (before, after) = (old.get(name).unwrap_or(&absent), new.get(name).unwrap_or(&absent));
        match (before, after) {
            _ if before == after => {}
            (Value::Object(before), Value::Object(after))
                if within.is_empty() && !name.ends_with("_schema") =>
            {
                compare(&format!("{name}."), before, after, &[], fields);
            }
            _ => {
                let field = format!("{within}{name}");
                fields.push(Field { field, old: before.clone(), new: after.clone() });
            }
        }
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN_LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Show for Differences {
    fn show(&self, page: &mut Page) {
        self.apps.show(page, "application");
        self.capabilities.show(page, "capability");
        if !self.same {
            page.gap();
        }
        page.line(
            Tone::Faint,
            format_args!("applications: {}; capabilities: {}.", self.apps.count(), self.capabilities.count()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::rows;
    use super::*;

    const OLD: &str = r#"{"apps":[{"id":"org.gone","version":"1","capabilities":["app.org.gone.x"]},
        {"id":"org.x","version":"1","declared":{"toolkit":"gtk3","name":"X"},"capabilities":["a"]}],
        "capabilities":[{"id":"app.org.x.a","name":"A","input_schema":{"type":"object"}},{"id":"app.org.x.b","name":"B"}]}"#;
    const NEW: &str = r#"{"apps":[{"id":"org.new","version":"1","capabilities":[]},
        {"id":"org.x","version":"2","problem":"p","declared":{"toolkit":"gtk4","name":"X"},"capabilities":["a","c"]}],
        "capabilities":[{"id":"app.org.x.a","name":"A","input_schema":{"type":"object","maxProperties":1}},
        {"id":"app.org.x.c","name":"C"}]}"#;

    fn between(old: &str, new: &str) -> Differences {
        Differences::between(&rows(old).unwrap(), &rows(new).unwrap())
    }

    #[test]
    fn every_difference_is_told_with_its_field_before_and_now() {
        let found = serde_json::to_value(between(OLD, NEW)).unwrap();
        let expected = serde_json::json!({
            "same": false,
            "apps": {"added": ["org.new"], "removed": ["org.gone"], "changed": [{"id": "org.x", "fields": [
                {"field": "declared.toolkit", "old": "gtk3", "new": "gtk4"},
                {"field": "problem", "old": null, "new": "p"},
                {"field": "version", "old": "1", "new": "2"}]}]},
            "capabilities": {"added": ["app.org.x.c"], "removed": ["app.org.x.b"], "changed": [
                {"id": "app.org.x.a", "fields": [{"field": "input_schema", "old": {"type": "object"},
                 "new": {"type": "object", "maxProperties": 1}}]}]},
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn a_snapshot_is_the_same_as_itself_in_any_layout_and_order() {
        for text in [OLD, NEW] {
            let pretty = serde_json::to_string_pretty(&serde_json::from_str::<Value>(text).unwrap()).unwrap();
            let same = between(text, &pretty);
            assert!(same.same);
            let mut page = Page::default();
            same.show(&mut page);
            let counts = "0 added, 0 removed, 0 changed";
            assert_eq!(page.finish(false), format!("applications: {counts}; capabilities: {counts}.\n"));
        }
    }

    #[test]
    fn the_page_marks_what_came_went_and_changed() {
        let mut page = Page::default();
        between(OLD, NEW).show(&mut page);
        let expected = "\
+ application org.new
- application org.gone
~ application org.x
    declared.toolkit: \"gtk3\" -> \"gtk4\"
    problem: none -> \"p\"
    version: \"1\" -> \"2\"
+ capability app.org.x.c
- capability app.org.x.b
~ capability app.org.x.a
    input_schema: {\"type\":\"object\"} -> {\"maxProperties\":1,\"type\":\"object\"}

applications: 1 added, 1 removed, 1 changed; capabilities: 1 added, 1 removed, 1 changed.
";
        assert_eq!(page.finish(false), expected);
    }

    #[test]
    fn a_long_value_is_cut_on_the_page_between_letters() {
        let value = Value::String("ü".repeat(MAX_SHOWN_LETTERS));
        assert_eq!(shown(&value).chars().count(), MAX_SHOWN_LETTERS + 1);
        assert_eq!(
            shown(&Value::String("ü".repeat(MAX_SHOWN_LETTERS - 2))).chars().count(),
            MAX_SHOWN_LETTERS
        );
    }
}
