//! What each keyword may hold, and the rule it becomes. A word that is not here is refused.

use serde_json::{Map, Value};

use super::SchemaError;
use super::compile::Compiler;
use super::node::{ALWAYS, Condition, Contains, Items, Members, NamedNodes, Names, NodeId, Rule, Types};
use super::number::Decimal;

/// The only dialect, with and without the empty fragment that older tools write.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords that mean something only together; they are compiled once for the whole schema.
const GROUPED: [&str; 11] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "if",
    "then",
    "else",
];

type Keywords = Map<String, Value>;
type Compiled<T> = Result<T, SchemaError>;

impl<'s> Compiler<'s> {
    pub(super) fn keywords(&mut self, schema: &'s Value, keywords: &'s Keywords) -> Compiled<Vec<Rule>> {
        let mut rules = Vec::new();
        for (word, value) in keywords {
            if GROUPED.contains(&word.as_str()) || self.is_annotation(schema, word, value)? {
                continue;
            }
            match word.as_str() {
                "$defs" | "definitions" => drop(self.named_schemas(value)?),
                "uniqueItems" => rules.extend(self.boolean(value)?.then_some(Rule::UniqueItems)),
                word => match self.assertion(word, value)? {
                    Some(rule) => rules.push(rule),
                    None => rules.push(self.applicator(word, value)?),
                },
            }
        }
        rules.extend(self.members(keywords)?);
        rules.extend(self.items(keywords)?);
        rules.extend(self.contains(keywords)?);
        rules.extend(self.condition(keywords)?);
        Ok(rules)
    }

    /// Whether `word` only describes; its value must still be what the draft says.
    fn is_annotation(&self, schema: &'s Value, word: &str, value: &'s Value) -> Compiled<bool> {
        let is_root = std::ptr::eq(schema, self.root);
        let problem = match word {
            "title" | "description" | "$comment" | "format" | "contentMediaType" | "contentEncoding" => {
                (!value.is_string()).then_some("is not a string")
            }
            "deprecated" | "readOnly" | "writeOnly" => (!value.is_boolean()).then_some("is not a boolean"),
            "examples" => (!value.is_array()).then_some("is not an array"),
            "default" => None,
            "$schema" | "$id" if !is_root => Some("is understood at the root only"),
            "$schema" => {
                let dialect = value.as_str().map(|text| text.strip_suffix('#').unwrap_or(text));
                (dialect != Some(DIALECT)).then_some("is not draft 2020-12, the only dialect understood")
            }
            "$id" => {
                value.as_str().is_none_or(|id| id.contains('#')).then_some("is not a URI without fragment")
            }
            word if word.starts_with("x-") => None,
            _ => return Ok(false),
        };
        problem.map_or(Ok(true), |problem| self.refuse(value, problem))
    }

    fn assertion(&mut self, word: &str, value: &'s Value) -> Compiled<Option<Rule>> {
        Ok(Some(match word {
            "type" => Rule::Type(self.types(value)?),
            "const" => Rule::Const(Box::new(value.clone())),
            "enum" => Rule::Enum(self.array(value)?.into()),
            "minimum" => Rule::Minimum(self.number(value)?),
            "exclusiveMinimum" => Rule::ExclusiveMinimum(self.number(value)?),
            "maximum" => Rule::Maximum(self.number(value)?),
            "exclusiveMaximum" => Rule::ExclusiveMaximum(self.number(value)?),
            "multipleOf" => self.multiple_of(value)?,
            "minLength" => Rule::MinLength(self.count(value)?),
            "maxLength" => Rule::MaxLength(self.count(value)?),
            "pattern" => match value.as_str() {
                Some(source) => Rule::Pattern(Box::new(self.pattern(value, source)?)),
                None => return self.refuse(value, "is not a string"),
            },
            "minProperties" => Rule::MinProperties(self.count(value)?),
            "maxProperties" => Rule::MaxProperties(self.count(value)?),
            "required" => Rule::Required(self.names(value)?),
            "dependentRequired" => {
                let members = self.object(value)?.iter();
                let dependents: Compiled<Vec<_>> =
                    members.map(|(name, names)| Ok((name.as_str().into(), self.names(names)?))).collect();
                Rule::DependentRequired(dependents?.into())
            }
            "minItems" => Rule::MinItems(self.count(value)?),
            "maxItems" => Rule::MaxItems(self.count(value)?),
            _ => return Ok(None),
        }))
    }

    fn applicator(&mut self, word: &str, value: &'s Value) -> Compiled<Rule> {
        Ok(match word {
            "$ref" => self.reference(value)?,
            "allOf" => Rule::AllOf(self.schemas(value)?),
            "anyOf" => Rule::AnyOf(self.schemas(value)?),
            "oneOf" => Rule::OneOf(self.schemas(value)?),
            "not" => Rule::Not(self.schema(value)?),
            "propertyNames" => Rule::PropertyNames(self.schema(value)?),
            "dependentSchemas" => Rule::DependentSchemas(self.named_schemas(value)?),
            _ => return self.refuse(value, "this keyword is not implemented; annotations begin with x-"),
        })
    }

    fn members(&mut self, keywords: &'s Keywords) -> Compiled<Option<Rule>> {
        let words =
            ["properties", "patternProperties", "additionalProperties"].map(|word| keywords.get(word));
        if words == [None; 3] {
            return Ok(None);
        }
        let [named, matched, additional] = words;
        let mut named = named.map_or(Ok(Box::default()), |value| self.named_schemas(value))?;
        named.sort_by(|left, right| left.0.cmp(&right.0));
        let mut patterns = Vec::new();
        if let Some(value) = matched {
            for (source, schema) in self.object(value)? {
                patterns.push((self.pattern(schema, source)?, self.schema(schema)?));
            }
        }
        let additional = self.or_always(additional)?;
        Ok(Some(Rule::Members(Box::new(Members { named, matched: patterns.into(), additional }))))
    }

    fn items(&mut self, keywords: &'s Keywords) -> Compiled<Option<Rule>> {
        let (prefix, rest) = (keywords.get("prefixItems"), keywords.get("items"));
        if prefix.is_none() && rest.is_none() {
            return Ok(None);
        }
        let prefix = prefix.map_or(Ok(Box::default()), |value| self.schemas(value))?;
        Ok(Some(Rule::Items(Box::new(Items { prefix, rest: self.or_always(rest)? }))))
    }

    fn contains(&mut self, keywords: &'s Keywords) -> Compiled<Option<Rule>> {
        let (min, max) = (keywords.get("minContains"), keywords.get("maxContains"));
        let Some(schema) = keywords.get("contains") else {
            let stray = min.or(max);
            return stray.map_or(Ok(None), |stray| self.refuse(stray, "has no effect without contains"));
        };
        let node = self.schema(schema)?;
        let min = min.map_or(Ok(1), |value| self.count(value))?;
        let max = max.map(|value| self.count(value)).transpose()?;
        Ok(Some(Rule::Contains(Box::new(Contains { node, min, max }))))
    }

    fn condition(&mut self, keywords: &'s Keywords) -> Compiled<Option<Rule>> {
        let (then, otherwise) = (keywords.get("then"), keywords.get("else"));
        let Some(condition) = keywords.get("if") else {
            let stray = then.or(otherwise);
            return stray.map_or(Ok(None), |stray| self.refuse(stray, "has no effect without if"));
        };
        if then.is_none() && otherwise.is_none() {
            return self.refuse(condition, "has no effect without then or else");
        }
        let condition = self.schema(condition)?;
        let (then, otherwise) = (self.or_always(then)?, self.or_always(otherwise)?);
        Ok(Some(Rule::If(Box::new(Condition { condition, then, otherwise }))))
    }

    fn or_always(&mut self, schema: Option<&'s Value>) -> Compiled<NodeId> {
        schema.map_or(Ok(ALWAYS), |schema| self.schema(schema))
    }

    fn schemas(&mut self, value: &'s Value) -> Compiled<Box<[NodeId]>> {
        let schemas = self.array(value)?;
        if schemas.is_empty() {
            return self.refuse(value, "is an empty array");
        }
        schemas.iter().map(|schema| self.schema(schema)).collect()
    }

    fn named_schemas(&mut self, value: &'s Value) -> Compiled<NamedNodes> {
        let members = self.object(value)?.iter();
        members.map(|(name, schema)| Ok((name.as_str().into(), self.schema(schema)?))).collect()
    }

    fn types(&self, value: &'s Value) -> Compiled<Types> {
        let words = match value {
            Value::Array(words) if !words.is_empty() => words.as_slice(),
            value => std::slice::from_ref(value),
        };
        let mut types = Types::NONE;
        for word in words {
            match word.as_str().and_then(Types::word) {
                Some(one) if types.with(one) != types => types = types.with(one),
                Some(_) => return self.refuse(word, "is in the list twice"),
                None => return self.refuse(word, "is not one of the seven type names, or a list of them"),
            }
        }
        Ok(types)
    }

    fn multiple_of(&self, value: &'s Value) -> Compiled<Rule> {
        let number = self.number(value)?;
        match Decimal::of(&number) {
            Some(unit) if !unit.is_zero() && number.as_f64().is_some_and(|float| float > 0.0) => {
                Ok(Rule::MultipleOf(Box::new((number, unit))))
            }
            _ => self.refuse(value, "is not greater than 0"),
        }
    }

    fn number(&self, value: &'s Value) -> Compiled<serde_json::Number> {
        value.as_number().cloned().map_or_else(|| self.refuse(value, "is not a number"), Ok)
    }

    /// A length or a count: 3 or 3.0, as the draft has it.
    fn count(&self, value: &'s Value) -> Compiled<u64> {
        let count = value.as_u64().or_else(|| match super::number::Real::of(value.as_number()?) {
            super::number::Real::Integer(integer) => u64::try_from(integer).ok(),
            super::number::Real::Float(_) => None,
        });
        count.map_or_else(|| self.refuse(value, "is not a whole number from 0 to 2^64 - 1"), Ok)
    }

    fn boolean(&self, value: &'s Value) -> Compiled<bool> {
        value.as_bool().map_or_else(|| self.refuse(value, "is not a boolean"), Ok)
    }

    fn array(&self, value: &'s Value) -> Compiled<&'s [Value]> {
        value.as_array().map_or_else(|| self.refuse(value, "is not an array"), |array| Ok(array.as_slice()))
    }

    fn object(&self, value: &'s Value) -> Compiled<&'s Keywords> {
        value.as_object().map_or_else(|| self.refuse(value, "is not an object"), Ok)
    }

    fn names(&self, value: &'s Value) -> Compiled<Names> {
        let mut names: Vec<Box<str>> = Vec::new();
        for name in self.array(value)? {
            match name.as_str() {
                Some(text) if names.iter().any(|known| **known == *text) => {
                    return self.refuse(name, "is in the list twice");
                }
                Some(text) => names.push(text.into()),
                None => return self.refuse(name, "is not a string"),
            }
        }
        Ok(names.into())
    }
}
