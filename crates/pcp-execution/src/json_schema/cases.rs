//! Every keyword by example: what it takes, what it shuts out, and what of it is refused.

use serde_json::{Value, json};

use super::*;

fn compile(schema: &Value) -> JsonSchema {
    JsonSchema::compile(schema).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn violation(schema: &Value, instance: &Value) -> Violation {
    compile(schema).validate(instance).unwrap_err()
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!(true), |inner, _| wrap(inner))
}

#[test]
fn each_keyword_takes_what_it_says_and_nothing_else() {
    // Schema, what fits, what does not.
    let table = [
        (json!(true), json!([null, 1, {}]), json!([])),
        (json!(false), json!([]), json!([null, 1, {}])),
        (
            json!({"description": "d", "x-pcp-sensitive": true, "format": "uri"}),
            json!(["no uri", 1]),
            json!([]),
        ),
        (json!({"type": "integer"}), json!([1, 1.0, -3, 1e300]), json!([1.5, "1", null, true])),
        (json!({"type": "number"}), json!([1, 1.5]), json!(["1", [], {}])),
        (json!({"type": ["null", "string"]}), json!([null, ""]), json!([0, false, [], {}])),
        (json!({"type": "boolean"}), json!([true, false]), json!([0, 1, null])),
        (
            json!({"enum": [1, "a", {"b": [2]}]}),
            json!([1.0, "a", {"b": [2.0]}]),
            json!([2, "b", {"b": [3]}, {}]),
        ),
        (json!({"enum": []}), json!([]), json!([null])),
        (
            json!({"const": {"a": 1, "b": 2}}),
            json!([{"b": 2.0, "a": 1}]),
            json!([{"a": 1}, {"a": 1, "b": "2"}]),
        ),
        (json!({"const": false}), json!([false]), json!([0, null, [false]])),
        (json!({"minimum": 2}), json!([2, 2.0, 3, "x"]), json!([1, 1.999, -5])),
        (json!({"exclusiveMinimum": 2}), json!([2.001, 3]), json!([2, 2.0, 1])),
        (
            json!({"maximum": 9007199254740992.0}),
            json!([9007199254740992_u64]),
            json!([9007199254740993_u64]),
        ),
        (json!({"exclusiveMaximum": 2.5}), json!([2, 2.4]), json!([2.5, 3])),
        (json!({"multipleOf": 3}), json!([0, 3, -9, 6.0, "x"]), json!([1, 3.5])),
        (json!({"multipleOf": 0.01}), json!([0.07, 19.99, 4]), json!([0.075])),
        (json!({"minLength": 2}), json!(["ab", "äö", 7]), json!(["a", "😀"])),
        (json!({"maxLength": 2.0}), json!(["", "😀😀"]), json!(["abc"])),
        (json!({"pattern": "^a+$"}), json!(["a", "aaa", 1]), json!(["", "ab", "a\n"])),
        (json!({"pattern": "b"}), json!(["abc"]), json!(["ac"])),
        (json!({"required": ["a", "b"]}), json!([{"a": 1, "b": null}, 3]), json!([{"a": 1}, {}])),
        (json!({"minProperties": 1}), json!([{"a": 1}, []]), json!([{}])),
        (json!({"maxProperties": 1}), json!([{"a": 1}]), json!([{"a": 1, "b": 1}])),
        (
            json!({"properties": {"a": {"type": "null"}}}),
            json!([{"a": null}, {"b": 1}, 1]),
            json!([{"a": 1}]),
        ),
        (json!({"additionalProperties": false}), json!([{}, []]), json!([{"a": 1}])),
        (
            json!({"properties": {"a": true}, "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}}),
            json!([{"a": 1, "x1": 2, "other": "s"}]),
            json!([{"x1": "s"}, {"other": 1}]),
        ),
        (
            json!({"properties": {"xa": {"minimum": 1}}, "patternProperties": {"^x": {"maximum": 5}}}),
            json!([{"xa": 3}]),
            json!([{"xa": 0}, {"xa": 6}]),
        ),
        (json!({"propertyNames": {"maxLength": 2}}), json!([{"ab": 1}]), json!([{"abc": 1}])),
        (
            json!({"dependentRequired": {"a": ["b"]}}),
            json!([{"a": 1, "b": 1}, {"b": 1}, {}]),
            json!([{"a": 1}]),
        ),
        (
            json!({"dependentSchemas": {"a": {"maxProperties": 1}}}),
            json!([{"a": 1}, {"b": 1, "c": 1}]),
            json!([{"a": 1, "b": 1}]),
        ),
        (json!({"items": {"type": "integer"}}), json!([[], [1, 2], "x"]), json!([[1, "2"]])),
        (json!({"prefixItems": [{"type": "integer"}, true]}), json!([[], [1], [1, 2, "x"]]), json!([["x"]])),
        (json!({"prefixItems": [true], "items": false}), json!([[], [1]]), json!([[1, 2]])),
        (json!({"contains": {"const": 1}}), json!([[0, 1], [1, 1]]), json!([[], [0]])),
        (
            json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}),
            json!([[1, 1], [1, 0, 1, 1]]),
            json!([[1], [1, 1, 1, 1]]),
        ),
        (json!({"contains": {"const": 1}, "minContains": 0}), json!([[], [0], [1]]), json!([])),
        (
            json!({"contains": {"const": 1}, "minContains": 0, "maxContains": 1}),
            json!([[], [1, 0]]),
            json!([[1, 1]]),
        ),
        (json!({"minItems": 1}), json!([[1], {}]), json!([[]])),
        (json!({"maxItems": 1}), json!([[], [1]]), json!([[1, 2]])),
        (
            json!({"uniqueItems": true}),
            json!([[], [1, "1", true, [1], {"a": 1}]]),
            json!([[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
        ),
        (json!({"uniqueItems": false}), json!([[1, 1]]), json!([])),
        (json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}), json!([1, 3]), json!([0, 4])),
        (json!({"anyOf": [{"type": "null"}, {"minimum": 3}]}), json!([null, 3, "x"]), json!([2])),
        (json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}), json!([2, 3]), json!([6, 1, "x"])),
        (json!({"not": {"type": "string"}}), json!([1]), json!(["x"])),
        (
            json!({"if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"maximum": 5}}),
            json!([20, 3]),
            json!([15, 7]),
        ),
        (json!({"if": {"minimum": 10}, "else": false}), json!([10]), json!([9])),
        (json!({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "null"}}}), json!([null]), json!([1])),
        (
            json!({"$ref": "#/definitions/n", "maximum": 5, "definitions": {"n": {"minimum": 1}}}),
            json!([1, 5]),
            json!([0, 6]),
        ),
        (
            json!({"properties": {"next": {"$ref": "#"}, "id": {"type": "integer"}}, "additionalProperties": false}),
            json!([{"next": {"next": {"id": 1}}}]),
            json!([{"next": {"next": {"id": "x"}}}, {"next": {"x": 1}}]),
        ),
        (
            json!({"prefixItems": [{"$ref": "#/prefixItems/1"}, {"type": "integer"}]}),
            json!([[1, 2]]),
            json!([["x", 2]]),
        ),
    ];
    for (schema, fitting, unfitting) in table {
        let compiled = compile(&schema);
        for instance in fitting.as_array().unwrap() {
            assert_eq!(compiled.validate(instance), Ok(()), "{schema} {instance}");
        }
        for instance in unfitting.as_array().unwrap() {
            assert!(compiled.validate(instance).is_err(), "{schema} {instance}");
        }
    }
}

#[test]
fn what_is_not_enforced_is_refused_where_it_stands() {
    let table = [
        (json!(3), ""),
        (
            json!({"properties": {"a/b": {"unevaluatedProperties": false}}}),
            "/properties/a~1b/unevaluatedProperties",
        ),
        (json!({"unevaluatedItems": false}), "/unevaluatedItems"),
        (json!({"$dynamicRef": "#a"}), "/$dynamicRef"),
        (json!({"$anchor": "a"}), "/$anchor"),
        (json!({"$vocabulary": {}}), "/$vocabulary"),
        (json!({"dependencies": {}}), "/dependencies"),
        (json!({"additionalItems": false}), "/additionalItems"),
        (json!({"items": [true]}), "/items"),
        (json!({"nullable": true}), "/nullable"),
        (json!({"Type": "string"}), "/Type"),
        (json!({"requird": ["a"]}), "/requird"),
        (json!({"$defs": {"unused": {"minimun": 1}}}), "/$defs/unused/minimun"),
        (json!({"allOf": [true, {"x": 1}]}), "/allOf/1/x"),
        (json!({"type": "text"}), "/type"),
        (json!({"type": []}), "/type"),
        (json!({"type": ["null", "null"]}), "/type/1"),
        (json!({"type": ["null", 1]}), "/type/1"),
        (json!({"enum": "a"}), "/enum"),
        (json!({"minimum": "1"}), "/minimum"),
        (json!({"exclusiveMinimum": true}), "/exclusiveMinimum"),
        (json!({"multipleOf": 0}), "/multipleOf"),
        (json!({"multipleOf": -2}), "/multipleOf"),
        (json!({"minLength": -1}), "/minLength"),
        (json!({"maxLength": 1.5}), "/maxLength"),
        (json!({"maxItems": 1e30}), "/maxItems"),
        (json!({"pattern": 1}), "/pattern"),
        (json!({"pattern": "(?=a)"}), "/pattern"),
        (json!({"patternProperties": {"(": true}}), "/patternProperties/("),
        (json!({"required": "a"}), "/required"),
        (json!({"required": [1]}), "/required/0"),
        (json!({"required": ["a", "a"]}), "/required/1"),
        (json!({"properties": []}), "/properties"),
        (json!({"properties": {"a": null}}), "/properties/a"),
        (json!({"dependentRequired": {"a": "b"}}), "/dependentRequired/a"),
        (json!({"uniqueItems": 1}), "/uniqueItems"),
        (json!({"allOf": []}), "/allOf"),
        (json!({"anyOf": {}}), "/anyOf"),
        (json!({"prefixItems": []}), "/prefixItems"),
        (json!({"not": []}), "/not"),
        (json!({"then": true}), "/then"),
        (json!({"else": true}), "/else"),
        (json!({"if": true}), "/if"),
        (json!({"minContains": 1}), "/minContains"),
        (json!({"contains": true, "maxContains": "1"}), "/maxContains"),
        (json!({"title": 1}), "/title"),
        (json!({"format": 1}), "/format"),
        (json!({"deprecated": "yes"}), "/deprecated"),
        (json!({"examples": {}}), "/examples"),
        (json!({"$schema": "http://json-schema.org/draft-07/schema#"}), "/$schema"),
        (json!({"$id": "https://example.org/a#b"}), "/$id"),
        (json!({"not": {"$id": "https://example.org/a"}}), "/not/$id"),
        (json!({"$ref": 1}), "/$ref"),
        (json!({"$ref": ""}), "/$ref"),
        (json!({"$ref": "http://example.org/s.json"}), "/$ref"),
        (json!({"$ref": "file:///etc/passwd"}), "/$ref"),
        (json!({"$ref": "other.json#/$defs/a"}), "/$ref"),
        (json!({"$ref": "#anchor"}), "/$ref"),
        (json!({"$ref": "#/$defs/none"}), "/$ref"),
        (json!({"$ref": "#/$defs/a~2", "$defs": {"a~2": true}}), "/$ref"),
        (json!({"$ref": "#/%zz"}), "/$ref"),
        (json!({"$ref": "#/$defs", "$defs": {"not": true}}), "/$ref"),
        (json!({"$ref": "#/default", "default": {"type": "null"}}), "/$ref"),
        (json!({"$ref": "#/x-a", "x-a": true}), "/$ref"),
        (json!({"$ref": "#/enum/0", "enum": [{}]}), "/$ref"),
    ];
    for (schema, pointer) in table {
        let error = JsonSchema::compile(&schema).map(|_| ()).expect_err(&schema.to_string());
        assert_eq!(error.pointer, pointer, "{schema}: {error}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn a_schema_that_refers_to_itself_for_the_same_value_is_refused() {
    for (schema, circle) in [
        (json!({"$ref": "#"}), vec![""]),
        (json!({"if": true, "then": {"$ref": "#"}}), vec!["", "/then"]),
        (
            json!({"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}}),
            vec!["/properties/a", "/properties/a/allOf/0"],
        ),
        (
            json!({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"dependentSchemas": {"b": {"$ref": "#/$defs/a"}}}}}),
            vec!["/$defs/a", "/$defs/a/dependentSchemas/b"],
        ),
    ] {
        let error = JsonSchema::compile(&schema).unwrap_err();
        assert!(error.message.contains("refers to itself"), "{schema}: {error}");
        // Where a circle begins is a matter of taste; that it is named is not.
        assert!(circle.contains(&error.pointer.as_str()), "{schema}: {error}");
    }
}

#[test]
fn a_schema_may_be_as_large_as_its_limits_and_no_larger() {
    let sized = |bytes: usize| json!({"description": "d".repeat(bytes - r#"{"description":""}"#.len())});
    let many = |count: usize| json!({"allOf": vec![true; count - 1]});
    let deep = |levels| nested(levels, |inner| json!({ "not": inner }));
    let chain = |refs: u32| {
        let mut defs = serde_json::Map::new();
        for n in 0..refs {
            defs.insert(n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}));
        }
        defs.insert(refs.to_string(), json!(true));
        json!({ "$defs": defs })
    };
    let patterns = |count: usize| json!({"allOf": vec![json!({"pattern": "a"}); count]});
    for (largest, larger, said) in [
        (sized(MAX_SCHEMA_BYTES), sized(MAX_SCHEMA_BYTES + 1), "65536 bytes"),
        (many(MAX_SUBSCHEMAS), many(MAX_SUBSCHEMAS + 1), "2048 subschemas"),
        (deep(MAX_SCHEMA_DEPTH), deep(MAX_SCHEMA_DEPTH + 1), "64 levels"),
        (chain(MAX_IN_PLACE_DEPTH), chain(MAX_IN_PLACE_DEPTH + 1), "64 schemas inside each other"),
        (patterns(MAX_PATTERNS_BYTES / 1024), patterns(MAX_PATTERNS_BYTES / 1024 + 1), "262144 bytes"),
    ] {
        assert!(JsonSchema::compile(&largest).is_ok(), "{said}");
        let error = JsonSchema::compile(&larger).unwrap_err();
        assert!(error.message.contains(said), "{error}");
    }
}

#[test]
fn what_costs_too_much_does_not_fit_not_even_when_negated() {
    // Each definition applies the next one twice: 2^20 rules for one value.
    let mut defs = serde_json::Map::new();
    for n in 0..20 {
        let next = json!({"$ref": format!("#/$defs/{}", n + 1)});
        defs.insert(n.to_string(), json!({"allOf": [next, next]}));
    }
    defs.insert("20".into(), json!({"type": "null"}));
    for schema in [
        json!({"$ref": "#/$defs/0", "$defs": defs}),
        json!({"not": {"$ref": "#/$defs/0"}, "$defs": defs}),
        json!({"anyOf": [{"$ref": "#/$defs/0"}, true], "$defs": defs}),
        json!({"if": {"$ref": "#/$defs/0"}, "then": true, "$defs": defs}),
    ] {
        assert!(violation(&schema, &json!(null)).message.contains("100000 steps"), "{schema}");
    }
}

#[test]
fn the_budget_ends_at_its_limit() {
    // One step each for the root and its rule, then one for each item.
    let schema = compile(&json!({"items": true}));
    let items = |count| Value::Array(vec![json!(1); count]);
    assert_eq!(schema.validate(&items(MAX_STEPS as usize - 2)), Ok(()));
    assert!(schema.validate(&items(MAX_STEPS as usize - 1)).unwrap_err().message.contains("too costly"));
}

#[test]
fn a_value_may_be_as_deep_as_the_limit_and_no_deeper() {
    let schema = json!({"items": {"$ref": "#"}});
    // Each level applies two schemas: the reference and what it names; the innermost holds no item.
    let deep = |levels: u32| (1..levels).fold(json!([]), |inner, _| json!([inner]));
    assert_eq!(compile(&schema).validate(&deep(MAX_APPLIED_DEPTH / 2)), Ok(()));
    let refused = violation(&schema, &deep(MAX_APPLIED_DEPTH / 2 + 1));
    assert!(refused.message.contains("256 schemas deep"), "{refused}");
    let unique = json!({"uniqueItems": true});
    assert!(violation(&unique, &deep(MAX_APPLIED_DEPTH + 2)).message.contains("deep"));
}

#[test]
fn a_violation_points_to_the_value_and_names_the_rule_and_the_limit() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "na/me": {"type": "string", "maxLength": 3, "pattern": "^[a-z]*$"},
            "kind": {"enum": ["a", "b", "c"]},
            "list": {"items": {"properties": {"~": {"const": 1}}}, "maxItems": 2},
        },
        "required": ["id"],
        "additionalProperties": false,
    });
    for (instance, pointer, message) in [
        (json!([]), "", "is not of type object"),
        (json!({}), "", "member \"id\" is required"),
        (json!({"id": 0}), "/id", "is less than 1"),
        (json!({"id": "x"}), "/id", "is not of type integer"),
        (json!({"id": 1, "na/me": "abcd"}), "/na~1me", "is longer than 3 characters"),
        (json!({"id": 1, "na/me": "A"}), "/na~1me", "does not match the pattern ^[a-z]*$"),
        (json!({"id": 1, "kind": "d"}), "/kind", "is not one of the 3 allowed values"),
        (json!({"id": 1, "list": [{}, {"~": 2}]}), "/list/1/~0", "is not the one allowed value"),
        (json!({"id": 1, "list": [1, 2, 3]}), "/list", "has more than 2 items"),
        (json!({"id": 1, "more": 1}), "", "unknown member \"more\""),
    ] {
        let found = violation(&schema, &instance);
        assert_eq!((found.pointer.as_str(), found.message.as_str()), (pointer, message), "{instance}");
    }
    assert_eq!(violation(&schema, &json!({"id": 0})).to_string(), "value /id: is less than 1");
    let error = JsonSchema::compile(&json!({"properties": {"x": {"y": 1}}})).unwrap_err();
    assert!(error.to_string().starts_with("schema /properties/x/y: "), "{error}");
}

#[test]
fn a_message_never_repeats_what_may_be_a_secret() {
    let secret = "CANARY secret, in no message";
    for schema in [
        json!({"type": "null"}),
        json!({"const": 1}),
        json!({"enum": ["a"]}),
        json!({"maxLength": 1}),
        json!({"minLength": 100}),
        json!({"pattern": "^x$"}),
        json!({"not": {"type": "string"}}),
        json!({"anyOf": [{"type": "null"}, {"maxLength": 1}]}),
        json!({"oneOf": [true, true]}),
        json!(false),
    ] {
        assert!(!violation(&schema, &json!(secret)).to_string().contains("CANARY"), "{schema}");
    }
    for schema in [json!({"additionalProperties": false}), json!({"propertyNames": {"maxLength": 1}})] {
        assert!(!violation(&schema, &json!({secret: 1})).to_string().contains("CANARY"), "{schema}");
        assert!(
            !violation(&schema, &json!({"CANARY".repeat(6): 1})).to_string().contains("CANARY"),
            "{schema}"
        );
    }
}

#[test]
fn a_compiled_schema_is_small_and_goes_between_threads() {
    fn shared<T: Send + Sync + std::fmt::Debug + 'static>() {}
    shared::<JsonSchema>();
    assert_eq!(size_of::<node::Rule>(), 24);
    assert_eq!(size_of::<node::Node>(), 8);
}
