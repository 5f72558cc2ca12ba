//! When two JSON values are the same: numbers by value, objects whatever their order (RFC 8259, draft 2020-12 §4.2.2).

use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

use super::budget::{Budget, Stop};
use super::number::{Real, compare};

/// Whether `left` and `right` are the same value.
pub(super) fn equal(left: &Value, right: &Value, budget: &mut Budget) -> Result<bool, Stop> {
    budget.spend(1)?;
    match (left, right) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Number(left), Value::Number(right)) => {
            Ok(compare(left, right).is_some_and(|order| order.is_eq()))
        }
        (Value::String(left), Value::String(right)) => {
            if left.len() == right.len() {
                budget.spend_reading(left)?;
            }
            Ok(left == right)
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right);
            all(pairs.map(|(left, right)| (Some(left), Some(right))), budget)
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            all(left.iter().map(|(name, left)| (Some(left), right.get(name))), budget)
        }
        _ => Ok(false),
    }
}

fn all<'v>(
    mut pairs: impl Iterator<Item = (Option<&'v Value>, Option<&'v Value>)>,
    budget: &mut Budget,
) -> Result<bool, Stop> {
    budget.descend()?;
    let same = loop {
        match pairs.next() {
            None => break true,
            Some((Some(left), Some(right))) if equal(left, right, budget)? => {}
            Some(_) => break false,
        }
    };
    budget.ascend();
    Ok(same)
}

/// The first two equal items, by the index of the second. Hashed first: pairs would make a long list quadratic.
pub(super) fn duplicates(items: &[Value], budget: &mut Budget) -> Result<Option<(usize, usize)>, Stop> {
    let keys = RandomState::new();
    let mut hashed = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        hashed.push((hash(item, &keys, budget)?, index));
    }
    hashed.sort_unstable();
    let mut found: Option<(usize, usize)> = None;
    for run in hashed.chunk_by(|left, right| left.0 == right.0) {
        for (place, (_, second)) in run.iter().enumerate() {
            for (_, first) in &run[..place] {
                let nearer = found.is_none_or(|(_, nearest)| *second < nearest);
                if nearer && equal(&items[*first], &items[*second], budget)? {
                    found = Some((*first, *second));
                }
            }
        }
    }
    Ok(found)
}

/// Equal values have equal hashes.
fn hash(value: &Value, keys: &RandomState, budget: &mut Budget) -> Result<u64, Stop> {
    budget.spend(1)?;
    Ok(match value {
        Value::Null => keys.hash_one(0_u8),
        Value::Bool(truth) => keys.hash_one((1_u8, truth)),
        Value::Number(number) => match Real::of(number) {
            Real::Integer(integer) => keys.hash_one((2_u8, integer)),
            Real::Float(float) => keys.hash_one((3_u8, float.to_bits())),
        },
        Value::String(text) => {
            budget.spend_reading(text)?;
            keys.hash_one((4_u8, text))
        }
        Value::Array(items) => {
            budget.descend()?;
            let mut sum = keys.hash_one(5_u8);
            for item in items {
                sum = keys.hash_one((sum, hash(item, keys, budget)?));
            }
            budget.ascend();
            sum
        }
        Value::Object(members) => {
            budget.descend()?;
            let mut sum = keys.hash_one(6_u8);
            for (name, member) in members {
                budget.spend_reading(name)?;
                // A sum, because members have no order.
                sum = sum.wrapping_add(keys.hash_one((name, hash(member, keys, budget)?)));
            }
            budget.ascend();
            sum
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_equal_whatever_their_spelling_and_order() {
        let ordered: Value = serde_json::from_str(r#"{"a":[1,{}],"b":2}"#).unwrap();
        let reversed: Value = serde_json::from_str(r#"{"b":2.0,"a":[1.0,{}]}"#).unwrap();
        for (left, right, same) in [
            (ordered.clone(), reversed, true),
            (ordered, json!({"a": [1, {}], "c": 2}), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!([1]), json!([1, 1]), false),
            (json!(1), json!(true), false),
            (json!(0), json!(false), false),
            (json!(""), json!(null), false),
            (json!(-0.0), json!(0), true),
        ] {
            assert_eq!(equal(&left, &right, &mut Budget::default()).unwrap(), same, "{left} {right}");
            let pair = [left, right];
            assert_eq!(duplicates(&pair, &mut Budget::default()).unwrap().is_some(), same, "{pair:?}");
        }
    }

    #[test]
    fn the_first_duplicate_is_named_and_long_lists_stay_within_the_budget() {
        let items = [json!(1), json!(2), json!("x"), json!(2.0), json!(1)];
        assert_eq!(duplicates(&items, &mut Budget::default()).unwrap(), Some((1, 3)));
        let long: Vec<Value> = (0..4096).map(|n| json!({ "n": n })).collect();
        assert_eq!(duplicates(&long, &mut Budget::default()).unwrap(), None);
    }
}
