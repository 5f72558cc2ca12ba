//! Where in the instance the check is: a chain through the call stack, written out only for a message.

use super::push_token;

#[derive(Debug)]
pub(super) enum Place<'p> {
    Root,
    Member(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    pub(super) fn member(&'p self, name: &'p str) -> Self {
        Self::Member(self, name)
    }

    pub(super) fn item(&'p self, index: usize) -> Self {
        Self::Item(self, index)
    }

    /// The JSON pointer (RFC 6901).
    pub(super) fn pointer(&self) -> String {
        let mut chain = Vec::new();
        let mut place = self;
        while let Place::Member(outer, _) | Place::Item(outer, _) = place {
            chain.push(place);
            place = outer;
        }
        let mut pointer = String::new();
        for place in chain.into_iter().rev() {
            match place {
                Place::Root => {}
                Place::Member(_, name) => push_token(&mut pointer, name),
                Place::Item(_, index) => push_token(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }
}
