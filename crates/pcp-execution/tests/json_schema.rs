//! The daemon's own JSON Schema validator against an independent one: same schema, same value, same verdict.
//!
//! The `jsonschema` crate is the oracle. It stays out of the daemon for its size; here it has the last word.

#![allow(clippy::unwrap_used, reason = "a strategy that cannot be built is a failed test")]

use pcp_execution::json_schema::JsonSchema;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

const NAMES: [&str; 4] = ["a", "b", "ab", "x1"];
const TEXTS: [&str; 8] = ["", "a", "b", "ab", "ba", "a b", "äö", "😀1"];
const PATTERNS: [&str; 9] =
    ["^a", "b$", "^[ab]{1,2}$", r"\d", "^.$", "a|ö", r"^\w*$", r"\s", "^(?:a[^a]?)+$"];
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
const UNITS: [&str; 9] = ["1", "2", "3.0", "0.5", "0.25", "1.5", "0.1", "0.01", "1e1"];

const NUMBERS: [&str; 15] =
    ["0", "-0.0", "1", "1.0", "2", "2.5", "3", "-1", "-1.5", "0.1", "0.3", "0.07", "1e2", "19.99", "6"];
/// Neighbours that a float cannot tell apart. Not for `multipleOf`: there the oracle itself rounds.
const HUGE: [&str; 7] = [
    "9007199254740991",
    "9007199254740992.0",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616.0",
    "-9223372036854775808",
    "1e300",
];

fn spelled(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn number() -> impl Strategy<Value = Value> {
    select(NUMBERS.to_vec()).prop_map(spelled)
}

fn instance() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        select(TEXTS.to_vec()).prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner, 0..4).prop_map(Value::Object),
        ]
    })
}

fn members(
    value: impl Strategy<Value = Value>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Map<String, Value>> {
    btree_map(select(NAMES.to_vec()), value, count)
        .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn keyword(word: &'static str, value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    value.prop_map(move |value| json!({ word: value })).boxed()
}

fn assertion() -> BoxedStrategy<Value> {
    let count = || (0_u64..4).prop_map(Value::from);
    let names = || subsequence(NAMES.to_vec(), 0..3).prop_map(|names| json!(names));
    let unit = select(UNITS.to_vec()).prop_map(spelled);
    let (numeric, textual) = (
        prop_oneof![
            keyword("minimum", number()),
            keyword("maximum", number()),
            keyword("exclusiveMinimum", number()),
            keyword("exclusiveMaximum", number()),
            keyword("multipleOf", unit),
        ],
        prop_oneof![
            keyword("minLength", count()),
            keyword("maxLength", count()),
            keyword("pattern", select(PATTERNS.to_vec()).prop_map(Value::from)),
        ],
    );
    let sizes = prop_oneof![
        keyword("minItems", count()),
        keyword("maxItems", count()),
        keyword("minProperties", count()),
        keyword("maxProperties", count()),
        keyword("uniqueItems", any::<bool>().prop_map(Value::from)),
        keyword("required", names()),
        keyword("dependentRequired", members(names(), 0..3).prop_map(Value::Object)),
    ];
    prop_oneof![
        3 => keyword("type", select(TYPES.to_vec()).prop_map(Value::from)),
        1 => keyword("type", subsequence(TYPES.to_vec(), 1..4).prop_map(|types| json!(types))),
        1 => keyword("const", instance()),
        1 => keyword("enum", vec(instance(), 1..4).prop_map(Value::from)),
        4 => numeric,
        3 => textual,
        4 => sizes,
    ]
    .boxed()
}

fn applicator(schema: &BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let one = || schema.clone();
    let some = || vec(schema.clone(), 1..4).prop_map(Value::from);
    let named = || members(schema.clone(), 0..4).prop_map(Value::Object);
    let patterned = btree_map(select(PATTERNS.to_vec()), schema.clone(), 0..3).prop_map(|found| json!(found));
    let contains = (one(), proptest::option::of(0_u64..3), proptest::option::of(0_u64..3));
    let logical = prop_oneof![
        keyword("allOf", some()),
        keyword("anyOf", some()),
        keyword("oneOf", some()),
        keyword("not", one()),
        (one(), one()).prop_map(|(test, then)| json!({"if": test, "then": then})),
        (one(), one()).prop_map(|(test, other)| json!({"if": test, "else": other})),
        (one(), one(), one())
            .prop_map(|(test, then, other)| json!({"if": test, "then": then, "else": other})),
    ];
    let structural = prop_oneof![
        4 => keyword("properties", named()),
        2 => keyword("additionalProperties", one()),
        1 => keyword("patternProperties", patterned),
        1 => keyword("propertyNames", one()),
        1 => keyword("dependentSchemas", named()),
        2 => keyword("items", one()),
        2 => keyword("prefixItems", some()),
        2 => contains.prop_map(|(contains, min, max)| {
            let mut schema = json!({ "contains": contains });
            min.into_iter().for_each(|min| schema["minContains"] = min.into());
            max.into_iter().for_each(|max| schema["maxContains"] = max.into());
            schema
        }),
    ];
    prop_oneof![logical, structural].boxed()
}

/// A few one-keyword schemas become one: so keywords meet that only have a meaning together.
fn merged(parts: Vec<Value>) -> Value {
    let mut schema = Map::new();
    parts.into_iter().filter_map(|part| part.as_object().cloned()).for_each(|part| schema.extend(part));
    // What one part dropped in, another may have overwritten half of.
    if !schema.contains_key("then") && !schema.contains_key("else") {
        schema.remove("if");
    }
    Value::Object(schema)
}

fn subschema() -> BoxedStrategy<Value> {
    let reference = select(vec!["#/$defs/a", "#/$defs/ab", "#"]).prop_map(Value::from);
    let leaf = prop_oneof![
        1 => any::<bool>().prop_map(Value::from),
        6 => vec(assertion(), 1..3).prop_map(merged),
        1 => keyword("$ref", reference),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        vec(prop_oneof![1 => assertion(), 3 => applicator(&inner.boxed())], 1..4).prop_map(merged)
    })
    .boxed()
}

fn document() -> impl Strategy<Value = Value> {
    (subschema(), subschema(), subschema()).prop_map(|(root, a, ab)| {
        let mut root = root.as_object().cloned().unwrap_or_default();
        root.insert("$defs".into(), json!({"a": a, "ab": ab}));
        Value::Object(root)
    })
}

fn oracle(schema: &Value) -> jsonschema::Validator {
    jsonschema::options().with_draft(jsonschema::Draft::Draft202012).offline().build(schema).unwrap()
}

#[test]
fn numbers_beyond_a_float_get_the_same_verdict() {
    let numbers: Vec<Value> = HUGE.into_iter().chain(NUMBERS).map(spelled).collect();
    for limit in &numbers {
        for word in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const"] {
            let schema = json!({ word: limit });
            let (compiled, oracle) = (JsonSchema::compile(&schema).unwrap(), oracle(&schema));
            for number in &numbers {
                assert_eq!(compiled.validate(number).is_ok(), oracle.is_valid(number), "{schema} {number}");
            }
        }
    }
}

proptest! {
    #[test]
    fn both_validators_agree(schema in document(), instances in vec(instance(), 1..12)) {
        match JsonSchema::compile(&schema) {
            // The one thing that this generator makes and this validator refuses.
            Err(error) => prop_assert!(error.message.contains("refers to itself"), "{schema}: {error}"),
            Ok(compiled) => {
                let oracle = oracle(&schema);
                for instance in &instances {
                    let verdict = compiled.validate(instance);
                    prop_assert_eq!(verdict.is_ok(), oracle.is_valid(instance), "{} {} {:?}", schema, instance, verdict);
                }
            }
        }
    }

    #[test]
    fn a_violation_points_into_the_instance(schema in document(), instance in instance()) {
        if let Ok(compiled) = JsonSchema::compile(&schema)
            && let Err(violation) = compiled.validate(&instance)
        {
            prop_assert!(instance.pointer(&violation.pointer).is_some(), "{schema} {instance} {violation}");
            prop_assert!(!violation.message.is_empty());
        }
    }

    #[test]
    fn any_json_is_compiled_or_refused_at_a_place_that_exists(schema in instance(), word in select(vec![
        "type", "enum", "properties", "required", "items", "prefixItems", "contains", "minContains", "pattern",
        "patternProperties", "multipleOf", "minLength", "allOf", "not", "if", "then", "dependentRequired",
        "dependentSchemas", "$defs", "$ref", "$id", "$schema", "title", "uniqueItems", "x-any", "unknown",
    ])) {
        let schema = json!({ word: schema });
        match JsonSchema::compile(&schema) {
            Ok(compiled) => {
                prop_assert!(word != "unknown");
                let _ = compiled.validate(&schema);
                // Nothing is taken that the draft does not take.
                prop_assert!(word == "x-any" || jsonschema::draft202012::meta::is_valid(&schema), "{schema}");
            }
            Err(error) => prop_assert!(schema.pointer(&error.pointer).is_some(), "{error}"),
        }
    }
}
