//! A value against the arena: the first rule that it breaks, or the bound that stopped the check.

use serde_json::{Map, Number, Value};

use super::Violation;
use super::budget::{Budget, Stop};
use super::equality::{duplicates, equal};
use super::node::{ALWAYS, Arena, Contains, Items, Members, NEVER, Names, NodeId, Rule};
use super::number::{Decimal, compare};
use super::place::Place;

type Outcome = Result<(), Stop>;

pub(super) fn validate(arena: &Arena, instance: &Value) -> Result<(), Violation> {
    let mut check = Check { arena, budget: Budget::default(), trials: 0 };
    check.node(arena.root, instance, &Place::Root).map_err(Stop::into_violation)
}

struct Check<'s> {
    arena: &'s Arena,
    budget: Budget,
    /// How many schemas around this one are only being tried: nobody reads why they do not fit.
    trials: u32,
}

impl Check<'_> {
    fn node(&mut self, id: NodeId, value: &Value, place: &Place<'_>) -> Outcome {
        self.budget.spend(1)?;
        if id == ALWAYS {
            return Ok(());
        }
        self.budget.descend()?;
        let rules = self.arena.rules(id).iter();
        let outcome = rules.map(|rule| self.rule(rule, value, place)).find(Result::is_err);
        self.budget.ascend();
        outcome.unwrap_or(Ok(()))
    }

    /// Whether `value` fits. Only a violation is a "no"; a bound goes on upwards.
    fn fits(&mut self, id: NodeId, value: &Value, place: &Place<'_>) -> Result<bool, Stop> {
        self.trials += 1;
        let outcome = self.node(id, value, place);
        self.trials -= 1;
        match outcome {
            Ok(()) => Ok(true),
            Err(Stop::Violates(_)) => Ok(false),
            Err(bound) => Err(bound),
        }
    }

    fn require(&self, holds: bool, place: &Place<'_>, message: impl FnOnce() -> String) -> Outcome {
        if holds {
            return Ok(());
        }
        let (pointer, message) =
            if self.trials == 0 { (place.pointer(), message()) } else { (String::new(), String::new()) };
        Err(Stop::Violates(Violation { pointer, message }))
    }

    fn rule(&mut self, rule: &Rule, value: &Value, place: &Place<'_>) -> Outcome {
        self.budget.spend(1)?;
        match (rule, value) {
            (Rule::Never, _) => self.require(false, place, || "is not allowed here".into()),
            (Rule::Type(types), _) => {
                self.require(types.admits(value), place, || format!("is not of type {}", types.names()))
            }
            (Rule::Const(allowed), _) => {
                let same = equal(allowed, value, &mut self.budget)?;
                self.require(same, place, || "is not the one allowed value".into())
            }
            (Rule::Enum(allowed), _) => self.one_of_values(allowed, value, place),
            (Rule::AllOf(nodes), _) => nodes.iter().try_for_each(|node| self.node(*node, value, place)),
            (Rule::AnyOf(nodes), _) => self.any_of(nodes, value, place),
            (Rule::OneOf(nodes), _) => self.one_of(nodes, value, place),
            (Rule::Not(node), _) => {
                let fits = self.fits(*node, value, place)?;
                self.require(!fits, place, || "fits what it must not be".into())
            }
            (Rule::If(rule), _) => {
                let branch =
                    if self.fits(rule.condition, value, place)? { rule.then } else { rule.otherwise };
                self.node(branch, value, place)
            }
            (Rule::Ref(node), _) => self.node(*node, value, place),
            (rule, Value::Number(number)) => self.number(rule, number, place),
            (rule, Value::String(text)) => self.text(rule, text, place),
            (rule, Value::Array(items)) => self.array(rule, items, place),
            (rule, Value::Object(members)) => self.object(rule, members, value, place),
            (_, Value::Null | Value::Bool(_)) => Ok(()),
        }
    }

    fn one_of_values(&mut self, allowed: &[Value], value: &Value, place: &Place<'_>) -> Outcome {
        for one in allowed {
            if equal(one, value, &mut self.budget)? {
                return Ok(());
            }
        }
        self.require(false, place, || {
            format!("is not one of the {}", counted(allowed.len(), "allowed value"))
        })
    }

    fn any_of(&mut self, nodes: &[NodeId], value: &Value, place: &Place<'_>) -> Outcome {
        for node in nodes {
            if self.fits(*node, value, place)? {
                return Ok(());
            }
        }
        self.require(false, place, || format!("fits none of the {}", counted(nodes.len(), "alternative")))
    }

    fn one_of(&mut self, nodes: &[NodeId], value: &Value, place: &Place<'_>) -> Outcome {
        let mut fitting = 0;
        for node in nodes {
            fitting += u32::from(self.fits(*node, value, place)?);
            let single = || format!("fits more than one of the {}", counted(nodes.len(), "alternative"));
            self.require(fitting <= 1, place, single)?;
        }
        self.require(fitting == 1, place, || {
            format!("fits none of the {}", counted(nodes.len(), "alternative"))
        })
    }

    fn number(&mut self, rule: &Rule, number: &Number, place: &Place<'_>) -> Outcome {
        let order = |limit| compare(number, limit);
        let (holds, broken, limit) = match rule {
            Rule::Minimum(limit) => (order(limit).is_some_and(|order| order.is_ge()), "is less than", limit),
            Rule::Maximum(limit) => {
                (order(limit).is_some_and(|order| order.is_le()), "is greater than", limit)
            }
            Rule::ExclusiveMinimum(limit) => {
                (order(limit).is_some_and(|order| order.is_gt()), "is not greater than", limit)
            }
            Rule::ExclusiveMaximum(limit) => {
                (order(limit).is_some_and(|order| order.is_lt()), "is not less than", limit)
            }
            Rule::MultipleOf(rule) => {
                let whole = Decimal::of(number).is_some_and(|decimal| decimal.is_multiple_of(rule.1));
                (whole, "is not a multiple of", &rule.0)
            }
            _ => return Ok(()),
        };
        self.require(holds, place, || format!("{broken} {limit}"))
    }

    fn text(&mut self, rule: &Rule, text: &str, place: &Place<'_>) -> Outcome {
        match rule {
            Rule::MinLength(min) => {
                self.budget.spend_reading(text)?;
                let message = || format!("is shorter than {}", counted(*min, "character"));
                self.require(wide(text.chars().count()) >= *min, place, message)
            }
            Rule::MaxLength(max) => {
                self.budget.spend_reading(text)?;
                let message = || format!("is longer than {}", counted(*max, "character"));
                self.require(wide(text.chars().count()) <= *max, place, message)
            }
            Rule::Pattern(pattern) => {
                let matches = pattern.matches(text, &mut self.budget)?;
                self.require(matches, place, || match pattern.shown() {
                    Some(shown) => format!("does not match the pattern {shown}"),
                    None => "does not match its pattern".into(),
                })
            }
            _ => Ok(()),
        }
    }

    fn array(&mut self, rule: &Rule, items: &[Value], place: &Place<'_>) -> Outcome {
        match rule {
            Rule::MinItems(min) => {
                let message = || format!("has fewer than {}", counted(*min, "item"));
                self.require(wide(items.len()) >= *min, place, message)
            }
            Rule::MaxItems(max) => {
                let message = || format!("has more than {}", counted(*max, "item"));
                self.require(wide(items.len()) <= *max, place, message)
            }
            Rule::UniqueItems => {
                let found = duplicates(items, &mut self.budget)?;
                let (first, second) = found.unwrap_or_default();
                self.require(found.is_none(), place, || format!("has equal items at {first} and {second}"))
            }
            Rule::Items(rule) => self.items(rule, items, place),
            Rule::Contains(rule) => self.contains(rule, items, place),
            _ => Ok(()),
        }
    }

    fn items(&mut self, rule: &Items, items: &[Value], place: &Place<'_>) -> Outcome {
        let nodes = rule.prefix.iter().copied().chain(std::iter::repeat(rule.rest));
        for (index, (item, node)) in items.iter().zip(nodes).enumerate() {
            if index >= rule.prefix.len() && rule.rest == NEVER {
                let message = || format!("has more than {}", counted(rule.prefix.len(), "item"));
                return self.require(false, place, message);
            }
            self.node(node, item, &place.item(index))?;
        }
        Ok(())
    }

    fn contains(&mut self, rule: &Contains, items: &[Value], place: &Place<'_>) -> Outcome {
        let mut found = 0;
        for (index, item) in items.iter().enumerate() {
            found += u64::from(self.fits(rule.node, item, &place.item(index))?);
            if rule.max.is_none() && found >= rule.min {
                return Ok(());
            }
            let max = rule.max.unwrap_or(u64::MAX);
            let message = || format!("has more than {} of the kind it is limited in", counted(max, "item"));
            self.require(found <= max, place, message)?;
        }
        let message = || format!("has fewer than {} of the kind it must have", counted(rule.min, "item"));
        self.require(found >= rule.min, place, message)
    }

    fn object(
        &mut self,
        rule: &Rule,
        members: &Map<String, Value>,
        value: &Value,
        place: &Place<'_>,
    ) -> Outcome {
        match rule {
            Rule::MinProperties(min) => {
                let message = || format!("has fewer than {}", counted(*min, "member"));
                self.require(wide(members.len()) >= *min, place, message)
            }
            Rule::MaxProperties(max) => {
                let message = || format!("has more than {}", counted(*max, "member"));
                self.require(wide(members.len()) <= *max, place, message)
            }
            Rule::Required(names) => names.iter().try_for_each(|name| {
                self.budget.spend(1)?;
                self.require(members.contains_key(&**name), place, || format!("member {name:?} is required"))
            }),
            Rule::DependentRequired(dependents) => self.dependent_required(dependents, members, place),
            Rule::DependentSchemas(dependents) => {
                for (name, node) in dependents {
                    self.budget.spend(1)?;
                    if members.contains_key(&**name) {
                        self.node(*node, value, place)?;
                    }
                }
                Ok(())
            }
            Rule::PropertyNames(node) => {
                for name in members.keys() {
                    self.budget.spend_reading(name)?;
                    let fits = self.fits(*node, &Value::String(name.clone()), place)?;
                    self.require(fits, place, || {
                        format!("the name of a member{} does not fit", named(name))
                    })?;
                }
                Ok(())
            }
            Rule::Members(rule) => self.members(rule, members, place),
            _ => Ok(()),
        }
    }

    fn dependent_required(
        &mut self,
        dependents: &[(Box<str>, Names)],
        members: &Map<String, Value>,
        place: &Place<'_>,
    ) -> Outcome {
        for (present, names) in dependents {
            self.budget.spend(1)?;
            for name in names.iter().filter(|_| members.contains_key(&**present)) {
                self.budget.spend(1)?;
                let message = || format!("member {name:?} is required with {present:?}");
                self.require(members.contains_key(&**name), place, message)?;
            }
        }
        Ok(())
    }

    fn members(&mut self, rule: &Members, members: &Map<String, Value>, place: &Place<'_>) -> Outcome {
        for (name, value) in members {
            self.budget.spend_reading(name)?;
            let inside = place.member(name);
            let named_node = rule.named.binary_search_by(|(known, _)| (**known).cmp(name.as_str()));
            let mut taken = false;
            if let Some((_, node)) = named_node.ok().and_then(|index| rule.named.get(index)) {
                taken = true;
                self.node(*node, value, &inside)?;
            }
            for (pattern, node) in &rule.matched {
                if pattern.matches(name, &mut self.budget)? {
                    taken = true;
                    self.node(*node, value, &inside)?;
                }
            }
            if !taken {
                let known = rule.additional != NEVER;
                self.require(known, place, || format!("unknown member{}", named(name)))?;
                self.node(rule.additional, value, &inside)?;
            }
        }
        Ok(())
    }
}

/// ` "name"` when it is a plain identifier; otherwise nothing: a key may be a secret put in the wrong place.
fn named(name: &str) -> String {
    const LONGEST: usize = 32;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    if plain && starts && name.len() <= LONGEST { format!(" \"{name}\"") } else { String::new() }
}

fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
