//! Parameters whose names are none: which name was probably meant.

use serde_json::{Map, Value};

/// Longest name that is compared, in letters: comparing costs its square, and nobody types more.
const MAX_LETTERS: usize = 64;

/// What to write in place of the first parameter that a capability's schema does not name, if any.
pub(crate) fn advice(parameters: &str, schema: &str) -> Option<String> {
    let given: Map<String, Value> = serde_json::from_str(parameters).ok()?;
    let schema: Value = serde_json::from_str(schema).ok()?;
    let known = schema.get("properties")?.as_object()?;
    let unknown = given.keys().find(|name| !known.contains_key(*name))?;
    // What is given already was not meant again.
    let free = known.keys().map(String::as_str).filter(|name| !given.contains_key(*name));
    nearest(unknown, free).map(|name| format!("there is no parameter {unknown:?}; {name:?} may be meant"))
}

/// The one of `names` that differs least, in a third of its letters at most.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = |name: &str| (name.chars().count() / 3).max(1);
    let near = names.filter_map(|name| Some((distance(word, name)?, name)));
    near.filter(|(distance, name)| *distance <= far(name)).min().map(|(_, name)| name)
}

/// How many letters have to be put in, left out, changed or swapped with the next one.
fn distance(one: &str, other: &str) -> Option<usize> {
    let letters = |text: &str| text.chars().map(|letter| letter.to_ascii_lowercase()).collect::<Vec<_>>();
    let (one, other) = (letters(one), letters(other));
    if one.len().max(other.len()) > MAX_LETTERS {
        return None;
    }
    // Rows of the table of distances between beginnings: the last two, and the one being made.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"properties":{"title":{},"body":{},"tags":{},"id":{}}}"#;

    #[test]
    fn a_name_that_nearly_fits_is_named() {
        let table = [
            (r#"{"titel":"x"}"#, Some("title")),
            (r#"{"Title":"x"}"#, Some("title")),
            (r#"{"ttile":"x","body":""}"#, Some("title")),
            (r#"{"bodi":1}"#, Some("body")),
            (r#"{"tag":1}"#, Some("tags")),
            (r#"{"title":"x","titel":1}"#, None),
            (r#"{"title":"x"}"#, None),
            (r#"{"weather":"x"}"#, None),
            (r#"{"":1}"#, None),
            ("[]", None),
            ("", None),
        ];
        for (parameters, name) in table {
            let advice = advice(parameters, SCHEMA);
            assert_eq!(advice.is_some(), name.is_some(), "{parameters}: {advice:?}");
            if let (Some(advice), Some(name)) = (advice, name) {
                assert!(advice.contains(&format!("{name:?} may be meant")), "{advice}");
            }
        }
        for schema in ["true", "{}", r#"{"properties":[]}"#, "nonsense"] {
            assert_eq!(advice(r#"{"titel":1}"#, schema), None);
        }
    }

    #[test]
    fn distances_are_counted_in_letters_up_to_the_limit() {
        let long = "x".repeat(MAX_LETTERS);
        let table = [
            ("", "", Some(0)),
            ("a", "", Some(1)),
            ("ab", "ba", Some(1)),
            ("kitten", "sitting", Some(3)),
            ("ü", "u", Some(1)),
        ];
        for (one, other, wanted) in table {
            assert_eq!(distance(one, other), wanted, "{one} {other}");
            assert_eq!(distance(other, one), wanted, "{other} {one}");
        }
        assert_eq!(distance(&long, &long), Some(0));
        assert_eq!(distance(&long, &format!("{long}x")), None);
    }
}
