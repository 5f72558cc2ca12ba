//! One copy of each text: names, categories and schemas repeat from application to application.
//!
//! A text that only one descriptor holds is forgotten here at the next sweep: to remember it costs more than a second
//! copy ever would.

use std::collections::HashSet;
use std::sync::Arc;

use pcp_core::CapabilityDescriptor;

/// Texts that may be added before those that are not shared are let go: what one large application brings.
const SWEEP_AFTER: usize = 1_024;
/// Who holds a text that is not shared: the set, and one descriptor.
const UNSHARED: usize = 2;

/// Texts of one descriptor.
const PLACES: usize = 6;

/// The texts that descriptors share. Belongs to the writer; readers hold the texts themselves.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: HashSet<Arc<str>>,
    swept: usize,
    /// What each place of the last descriptor was: predictions share their texts before they come here.
    last: [Option<Arc<str>>; PLACES],
}

impl Interner {
    /// Lets every text of the descriptor be the one copy.
    pub(crate) fn intern(&mut self, capability: &mut CapabilityDescriptor) {
        let texts: [_; PLACES] = [
            &mut capability.name,
            &mut capability.description,
            &mut capability.category,
            &mut capability.input_schema,
            &mut capability.output_schema,
            &mut capability.version,
        ];
        for (text, place) in texts.into_iter().zip(0..) {
            let is_shared =
                |last: &Option<Arc<str>>| last.as_ref().is_some_and(|last| Arc::ptr_eq(last, text));
            if !self.last.get(place).is_some_and(is_shared) {
                self.share(text);
                if let Some(last) = self.last.get_mut(place) {
                    *last = Some(text.clone());
                }
            }
        }
    }

    fn share(&mut self, text: &mut Arc<str>) {
        if let Some(held) = self.texts.get(text) {
            *text = held.clone();
        } else {
            self.texts.insert(text.clone());
        }
    }

    /// Lets go what is not shared, once it may be as much as what is.
    pub(crate) fn sweep(&mut self) {
        self.last = Default::default();
        if self.texts.len() < 2 * self.swept + SWEEP_AFTER {
            return;
        }
        self.texts.retain(|text| Arc::strong_count(text) > UNSHARED);
        self.texts.shrink_to_fit();
        self.swept = self.texts.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_become_one_and_those_that_are_not_shared_are_let_go() {
        let mut interner = Interner::default();
        let (mut first, mut second): (Arc<str>, Arc<str>) = ("same".into(), "same".into());
        interner.share(&mut first);
        interner.share(&mut second);
        assert!(Arc::ptr_eq(&first, &second));
        for n in 0..SWEEP_AFTER {
            interner.share(&mut format!("gone {n}").into());
        }
        interner.sweep();
        assert_eq!(interner.texts.len(), 1);
    }
}
