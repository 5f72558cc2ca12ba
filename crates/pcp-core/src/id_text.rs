//! The text of a capability id: inline while it is short, shared when it is long.
//!
//! A buffer of the longest id would be four cache lines per capability and as much to copy per request; nearly every
//! id is shorter than one. A longer one costs one allocation when it is parsed, and a count when it is cloned.

use core::cmp::Ordering;
use core::hash::{Hash, Hasher};
use std::sync::Arc;

use heapless::String as Inline;

/// Up to `N` bytes inline, anything longer behind a shared pointer. The same text always has the same form.
#[derive(Clone)]
pub(crate) enum IdText<const N: usize> {
    Inline(Inline<N, u8>),
    Shared(Arc<str>),
}

impl<const N: usize> IdText<N> {
    pub(crate) fn new(text: &str) -> Self {
        let mut inline = Inline::new();
        match inline.push_str(text) {
            Ok(()) => Self::Inline(inline),
            Err(_) => Self::Shared(text.into()),
        }
    }

    #[inline]
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Inline(text) => text.as_str(),
            Self::Shared(text) => text,
        }
    }
}

impl<const N: usize> PartialEq for IdText<N> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl<const N: usize> Eq for IdText<N> {}

impl<const N: usize> PartialOrd for IdText<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Ord for IdText<N> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl<const N: usize> Hash for IdText<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AppId, CapabilityId, MAX_APP_ID_BYTES, MAX_CAPABILITY_ID_BYTES};

    #[test]
    fn a_text_of_the_limit_is_inline_and_one_byte_more_is_shared() {
        let (fits, longer) = ("a".repeat(54), "a".repeat(55));
        assert!(matches!(IdText::<54>::new(&fits), IdText::Inline(_)));
        assert!(matches!(IdText::<54>::new(&longer), IdText::Shared(_)));
        for text in [fits, longer] {
            assert_eq!(IdText::<54>::new(&text).as_str(), text);
        }
    }

    #[test]
    fn an_id_is_small_and_the_longest_ones_keep_their_text_and_order() {
        assert_eq!((size_of::<CapabilityId>(), size_of::<AppId>()), (56, 16));
        let longest = format!("app.{}.x", "a".repeat(MAX_CAPABILITY_ID_BYTES - "app..x".len()));
        let short = CapabilityId::parse("app.a.x").unwrap();
        let long = CapabilityId::parse(&longest).unwrap();
        assert_eq!((long.as_str(), long.action()), (longest.as_str(), "x"));
        assert!(short < long && long == long.clone());
        let app = "b".repeat(MAX_APP_ID_BYTES);
        assert_eq!(AppId::parse(&app).unwrap().as_str(), app);
    }
}
