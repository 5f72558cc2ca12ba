//! The two tables of predictions, as their authors write them.

use std::collections::HashMap;
use std::sync::Arc;

use pcp_core::{ActionClass, CapabilityId, Domain, IntentClassifier};

use super::{MAX_CATEGORIES, UNKNOWN_TOOLKIT};
use crate::toolkit::Toolkit;

/// The columns: every toolkit, and none that could be told.
const COLUMNS: usize = Toolkit::ALL.len() + 1;

/// A text of the tables, with the one copy of it that all capabilities share.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) text: &'static str,
    pub(super) shared: Arc<str>,
}

impl Word {
    fn new(text: &'static str) -> Self {
        Self { text, shared: text.into() }
    }
}

/// One action.
#[derive(Debug)]
pub(super) struct Action {
    pub(super) word: Word,
    pub(super) description: Word,
    pub(super) side_effects: bool,
}

/// The actions of some categories, by toolkit; numbers are places in the list of actions.
#[derive(Debug, Default)]
struct Block {
    categories: Vec<Word>,
    cells: [Option<Vec<usize>>; COLUMNS],
}

/// Both tables.
#[derive(Debug, Default)]
pub(super) struct Table {
    actions: Vec<Action>,
    blocks: Vec<Block>,
    /// The block in which a category stands; a test holds that it stands in one.
    places: HashMap<&'static str, usize>,
}

/// The category that every application has.
const ANY: &str = "*";

/// The lines that say something, with their numbers.
fn lines(text: &'static str) -> impl Iterator<Item = (usize, &'static str)> {
    let lines = text.lines().zip(1..).map(|(line, number)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

impl Table {
    /// Reads both tables; an error names the line.
    pub(super) fn read(actions: &'static str, predictions: &'static str) -> Result<Self, String> {
        let mut table = Self::default();
        let mut places = HashMap::new();
        for (number, line) in lines(actions) {
            let at = |why: &str| format!("actions.txt line {number}: {why}");
            let (word, description) =
                line.split_once(' ').ok_or_else(|| at("an action and a sentence are expected"))?;
            let id =
                CapabilityId::from_parts(Domain::App, "x", word).map_err(|error| at(&error.to_string()))?;
            if places.insert(word, table.actions.len()).is_some() {
                return Err(at("the action stands there twice"));
            }
            let side_effects = IntentClassifier.classify(&id).gate_class != ActionClass::Read;
            let description = Word::new(description.trim());
            table.actions.push(Action { word: Word::new(word), description, side_effects });
        }
        for (number, line) in lines(predictions) {
            let at = |why: &str| format!("predictions.txt line {number}: {why}");
            if let Some(names) = line.strip_prefix('[') {
                let names = names.strip_suffix(']').ok_or_else(|| at("\"]\" is missing"))?;
                let categories = names.split(' ').map(Word::new).collect();
                table.blocks.push(Block { categories, ..Block::default() });
                continue;
            }
            let block = table.blocks.last_mut().ok_or_else(|| at("no category stands before"))?;
            block.line(line, &places).map_err(|why| at(&why))?;
        }
        table.blocks.iter().try_for_each(Block::check)?;
        for (place, block) in table.blocks.iter().enumerate() {
            table.places.extend(block.categories.iter().map(|word| (word.text, place)));
        }
        Ok(table)
    }

    /// The actions of these categories, each once, with the category that says so. Blocks stand in the table from the
    /// general to the special, so that they are gone through backwards.
    pub(super) fn of(
        &self,
        categories: &[impl AsRef<str>],
        toolkit: Option<Toolkit>,
    ) -> Vec<(&Word, &Action)> {
        let categories = categories.get(..MAX_CATEGORIES).unwrap_or(categories);
        let column = column(toolkit);
        let mut seen = vec![false; self.actions.len()];
        let mut found = Vec::new();
        let names = categories.iter().map(AsRef::as_ref).chain([ANY]);
        let mut places: Vec<usize> = names.filter_map(|name| self.places.get(name).copied()).collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places.dedup();
        for block in places.into_iter().filter_map(|place| self.blocks.get(place)) {
            let of =
                |word: &&Word| word.text == ANY || categories.iter().any(|name| name.as_ref() == word.text);
            let Some(category) = block.categories.iter().find(of) else { continue };
            for place in block.cells.get(column).and_then(Option::as_ref).into_iter().flatten() {
                if let (Some(action), Some(seen @ false)) = (self.actions.get(*place), seen.get_mut(*place)) {
                    *seen = true;
                    found.push((category, action));
                }
            }
        }
        found
    }

    pub(super) fn knows(&self, category: &str) -> bool {
        category != ANY && self.places.contains_key(category)
    }
}

fn column(toolkit: Option<Toolkit>) -> usize {
    let place = |toolkit| Toolkit::ALL.iter().position(|known| *known == toolkit);
    toolkit.and_then(place).unwrap_or(COLUMNS - 1)
}

impl Block {
    /// One line: toolkits, "=", actions.
    fn line(&mut self, line: &'static str, places: &HashMap<&str, usize>) -> Result<(), String> {
        let (toolkits, actions) =
            line.split_once(" = ").ok_or("toolkits, \" = \" and actions are expected")?;
        let empty = actions.strip_prefix('-').map(str::trim_start);
        let cell: Vec<usize> = match empty {
            Some(reason) if reason.len() > 1 && reason.starts_with('#') => Vec::new(),
            Some(_) => return Err("\"-\" needs a reason after \"#\"".to_owned()),
            None => {
                let place =
                    |name| places.get(name).copied().ok_or_else(|| format!("no action is called {name:?}"));
                actions.split(' ').map(place).collect::<Result<_, _>>()?
            }
        };
        for name in toolkits.split(' ') {
            let toolkit = Toolkit::from_word(name);
            if toolkit.is_none() && name != UNKNOWN_TOOLKIT {
                return Err(format!("no toolkit is called {name:?}"));
            }
            let place = self.cells.get_mut(column(toolkit)).ok_or("no such column")?;
            if place.replace(cell.clone()).is_some() {
                return Err(format!("{name} stands there twice"));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let whole = self.cells.iter().all(Option::is_some);
        let names = || self.categories.iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
        if whole {
            Ok(())
        } else {
            Err(format!("predictions.txt: [{}] does not name every toolkit", names()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: &str = "read  Reads\nsend  Sends\n";
    const ALL: &str = "gtk2 gtk3 gtk4 qt5 qt6 electron java terminal";

    fn why(predictions: String) -> String {
        Table::read(ACTIONS, predictions.leak()).unwrap_err()
    }

    #[test]
    fn a_table_that_breaks_its_rules_is_refused_with_the_line() {
        assert!(Table::read(ACTIONS, format!("[A]\n{ALL} = read\nunknown = - # why\n").leak()).is_ok());
        let table = [
            (format!("[A]\n{ALL} = read\n"), "predictions.txt: [A] does not name every toolkit"),
            (format!("[A]\n{ALL} unknown = raed\n"), "predictions.txt line 2: no action is called \"raed\""),
            (format!("[A]\n{ALL} gtk3 = read\n"), "predictions.txt line 2: gtk3 stands there twice"),
            ("[A]\ngtk9 = read\n".into(), "predictions.txt line 2: no toolkit is called \"gtk9\""),
            ("[A]\ngtk3 = -\n".into(), "predictions.txt line 2: \"-\" needs a reason after \"#\""),
            ("[A\n".into(), "predictions.txt line 1: \"]\" is missing"),
            ("gtk3 = read\n".into(), "predictions.txt line 1: no category stands before"),
        ];
        for (text, want) in table {
            assert_eq!(why(text.clone()), want, "{text}");
        }
        let twice = Table::read("read Reads\nread Reads\n", "").unwrap_err();
        assert_eq!(twice, "actions.txt line 2: the action stands there twice");
    }

    #[test]
    fn the_tables_of_the_program_keep_their_rules() {
        let actions = include_str!("../../data/actions.txt");
        let predictions = include_str!("../../data/predictions.txt");
        let table = Table::read(actions, predictions).unwrap();
        let mut names: Vec<&str> =
            table.blocks.iter().flat_map(|block| &block.categories).map(|w| w.text).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a category stands in two blocks");
        let mut used = vec![false; table.actions.len()];
        for block in &table.blocks {
            for cell in block.cells.iter().flatten() {
                let mut once = cell.clone();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), cell.len(), "{:?} names an action twice", block.categories);
                cell.iter().for_each(|place| used[*place] = true);
            }
        }
        for (action, used) in table.actions.iter().zip(used) {
            assert!(used, "nothing predicts {}", action.word.text);
        }
    }
}
