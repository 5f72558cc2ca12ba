//! A story: a named check of a device that says what it needs.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use crate::device::Device;
use crate::error::Error;

/// What a story needs of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// A root shell on the console.
    Console,
    /// The operator's shell over SSH.
    Ssh,
    /// The power can be cut, and the device switched on again.
    PowerSwitch,
}

/// A check of a device.
#[derive(Debug, Clone, Copy)]
pub struct Story {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub about: &'static str,
    /// What it needs; a target without it skips the story.
    pub needs: &'static [Need],
    /// Whether it is told only to who asks for it by name, not with all the others.
    pub only_by_name: bool,
    /// Tells it.
    pub tell: fn(&mut Device) -> Result<Figures, Error>,
}

/// What a story measured or counted; nothing, for most.
pub type Figures = serde_json::Map<String, serde_json::Value>;

/// How a story ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ending {
    /// The story.
    pub name: &'static str,
    /// `passed`, `failed` or `skipped`.
    pub outcome: Outcome,
    /// Why, if it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Seconds it took.
    pub seconds: f64,
    /// What it measured.
    #[serde(skip_serializing_if = "Figures::is_empty")]
    pub figures: Figures,
}

/// The three endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything was as told.
    Passed,
    /// Something was not.
    Failed,
    /// The target lacks what the story needs.
    Skipped,
}

/// All endings of a run, with their count.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tally {
    /// In the order of telling.
    pub stories: Vec<Ending>,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were skipped.
    pub skipped: usize,
}

impl Tally {
    /// Counts one more ending.
    pub fn add(&mut self, ending: Ending) {
        match ending.outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Skipped => self.skipped += 1,
        }
        self.stories.push(ending);
    }
}

/// The closing line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// One line for one story; the reason of a failure may have more.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.outcome, &self.reason) {
            (Outcome::Passed, _) => write!(f, "ok       {} ({:.1} s)", self.name, self.seconds),
            (Outcome::Failed, reason) => {
                write!(f, "FAILED   {}: {}", self.name, reason.as_deref().unwrap_or("?"))
            }
            (Outcome::Skipped, reason) => {
                write!(f, "skipped  {}: {}", self.name, reason.as_deref().unwrap_or("?"))
            }
        }
    }
}

/// Tells one story, or says why not.
pub fn tell(story: &Story, device: &mut Device) -> Ending {
    let started = Instant::now();
    let lacking = story.needs.iter().find_map(|&need| device.has(need).err());
    let (outcome, reason, figures) = match lacking {
        Some(reason) => (Outcome::Skipped, Some(reason.to_owned()), Figures::new()),
        None => match (story.tell)(device) {
            Ok(figures) => (Outcome::Passed, None, figures),
            Err(error) => (Outcome::Failed, Some(error.to_string()), Figures::new()),
        },
    };
    Ending { name: story.name, outcome, reason, seconds: started.elapsed().as_secs_f64(), figures }
}

/// The stories that `name` means: one, or all of them that are not told by name only.
///
/// # Errors
/// [`Error::Usage`] with the names there are.
pub fn named<'a>(stories: &'a [Story], name: &str) -> Result<Vec<&'a Story>, Error> {
    let meant = |story: &&Story| if name == "all" { !story.only_by_name } else { story.name == name };
    let chosen: Vec<_> = stories.iter().filter(meant).collect();
    if chosen.is_empty() {
        let names: Vec<_> = stories.iter().map(|story| story.name).collect();
        return Err(Error::Usage(format!("no story {name:?}; there are: all, {}", names.join(", "))));
    }
    Ok(chosen)
}
