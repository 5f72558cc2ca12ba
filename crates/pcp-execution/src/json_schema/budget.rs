//! How much one validation may cost before it is given up (TH-05).

use super::Violation;

/// Most steps of one validation: a schema applied, a rule tried, a value compared, a stretch of text matched.
/// Honest parameters of 4096 values need a third of it; `allOf` of `allOf` of … needs more than there is.
pub const MAX_STEPS: u32 = 100_000;
/// Most schemas applied inside each other: four for each of 64 levels of parameters, and a small stack.
pub const MAX_APPLIED_DEPTH: u32 = 256;
/// Bytes of text that are read for one step, when reading is all that is done.
const BYTES_PER_STEP: usize = 256;

/// Why a check ended early. A bound must pass through `not`, `anyOf` and `if` unchanged: "could not be checked" is
/// never "does not fit", because the negation of that would be "fits".
#[derive(Debug)]
pub(super) enum Stop {
    Violates(Violation),
    TooCostly,
    TooDeep,
}

impl Stop {
    pub(super) fn into_violation(self) -> Violation {
        let whole = |message| Violation { pointer: String::new(), message };
        match self {
            Self::Violates(violation) => violation,
            Self::TooCostly => whole(format!("too costly to check: more than {MAX_STEPS} steps")),
            Self::TooDeep => {
                whole(format!("too costly to check: more than {MAX_APPLIED_DEPTH} schemas deep"))
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Budget {
    steps: u32,
    depth: u32,
}

impl Budget {
    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps = u32::try_from(steps).map_or(u32::MAX, |steps| self.steps.saturating_add(steps));
        if self.steps > MAX_STEPS { Err(Stop::TooCostly) } else { Ok(()) }
    }

    pub(super) fn spend_reading(&mut self, text: &str) -> Result<(), Stop> {
        self.spend(1 + text.len() / BYTES_PER_STEP)
    }

    /// Pairs with [`Budget::ascend`] on every way out that does not end the validation.
    pub(super) fn descend(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > MAX_APPLIED_DEPTH { Err(Stop::TooDeep) } else { Ok(()) }
    }

    pub(super) fn ascend(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }
}
