//! Globs over capability ids: `*` in an allow rule never crosses into the action, in a gate it spans everything (C57).

use crate::domain::Domain;
use crate::id::CapabilityId;

/// Longest glob in bytes: a rule file is written by people.
pub const MAX_GLOB_BYTES: usize = 255;

/// Whether `pattern` matches the whole of `text`; `*` stands for any run of characters, dots included.
///
/// Iterative with one point of return: linear memory none, time at most pattern times text.
#[must_use]
pub fn spans(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p).is_some() && pattern.get(p) == text.get(t) {
            p += 1;
            t += 1;
        } else if let Some((star_p, star_t)) = star {
            p = star_p + 1;
            t = star_t + 1;
            star = Some((star_p, t));
        } else {
            return false;
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|byte| *byte == b'*')
}

/// A pattern of an allow rule: the domain literal, the app part and the action each on their own.
///
/// `app.*.*` allows `app.org.xfce.mousepad.read`: the star in app position spans dots, the action's
/// star cannot, because an action has none.
#[must_use]
pub fn allows(pattern: &str, id: &CapabilityId) -> bool {
    let Some((domain, rest)) = pattern.split_once('.') else { return false };
    let Some((app, action)) = rest.rsplit_once('.') else { return false };
    domain.parse::<Domain>().is_ok_and(|domain| domain == id.domain())
        && spans(app, id.app())
        && spans(action, id.action())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slow reference: tries every split for every star.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skip| reference(rest, &text[skip..])),
            Some((first, rest)) => {
                text.split_first().is_some_and(|(head, tail)| head == first && reference(rest, tail))
            }
        }
    }

    #[test]
    fn an_allow_rule_is_bound_to_its_domain_and_a_gate_spans_everything() {
        let id = |text| CapabilityId::parse(text).unwrap();
        assert!(allows("app.*.*", &id("app.org.xfce.mousepad.read")));
        assert!(allows("system.*.*", &id("system.network.wifi.connect")));
        assert!(!allows("app.*.*", &id("system.power.shutdown")));
        assert!(!allows("*.*.*", &id("app.mail.read")));
        assert!(!allows("app.*.read", &id("app.mail.read_all")));
        assert!(!allows("app", &id("app.mail.read")));
        assert!(spans("*.delete*", "app.org.portal.notes.delete_all"));
        assert!(spans("system.network.*.connect*", "system.network.a.b.connect_now"));
        assert!(!spans("system.audio.*.set_volume*", "system.audio.set_volume"));
    }

    proptest! {
        #[test]
        fn the_matcher_agrees_with_the_slow_reference(pattern in "[ab.*]{0,10}", text in "[ab.]{0,12}") {
            prop_assert_eq!(spans(&pattern, &text), reference(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
