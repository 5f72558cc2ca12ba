//! How many effects one caller, and one application, may have under way: a hung application and the caller that
//! keeps asking it shall not use up what everybody has (TH-06, TH-21).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pcp_core::{AppId, ErrorCode, Stage};

use super::Refusal;

/// Effects of one caller under way: a quarter of what the ledger holds in all.
pub(crate) const MAX_EFFECTS_PER_CALLER: usize = 32;
/// Effects of one application under way. It serves a few at once; the others wait inside their budget.
pub(crate) const MAX_EFFECTS_PER_APP: usize = 32;

/// Who has how many effects under way. Whoever has none has no entry.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    callers: HashMap<u32, usize>,
    apps: HashMap<AppId, usize>,
}

/// One effect under way; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share<'s> {
    shares: &'s Shares,
    caller: u32,
    app: AppId,
}

impl Shares {
    /// Takes a share for an effect, or refuses with the limit.
    pub(crate) fn take(&self, caller: u32, app: &AppId) -> Result<Share<'_>, Refusal> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let refuse = |who: String, limit: usize| {
            let message = format!("{limit} effects {who} are under way, the limit; this one was not started");
            Err(Refusal::new(Stage::Execute, ErrorCode::LimitReached, message)
                .hint("wait for one of them to end and ask again"))
        };
        if counts.callers.get(&caller).is_some_and(|count| *count >= MAX_EFFECTS_PER_CALLER) {
            return refuse(format!("of uid {caller}"), MAX_EFFECTS_PER_CALLER);
        }
        if counts.apps.get(app).is_some_and(|count| *count >= MAX_EFFECTS_PER_APP) {
            return refuse(format!("of application {app}"), MAX_EFFECTS_PER_APP);
        }
        *counts.callers.entry(caller).or_default() += 1;
        *counts.apps.entry(app.clone()).or_default() += 1;
        Ok(Share { shares: self, caller, app: app.clone() })
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut counts = self.shares.counts.lock().unwrap_or_else(PoisonError::into_inner);
        give_back(&mut counts.callers, &self.caller);
        give_back(&mut counts.apps, &self.app);
    }
}

fn give_back<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(n: usize) -> AppId {
        AppId::parse(&format!("org.example.a{n}")).unwrap()
    }

    #[test]
    fn one_caller_cannot_take_what_another_needs() {
        let shares = Shares::default();
        let held: Vec<_> = (0..MAX_EFFECTS_PER_CALLER).map(|n| shares.take(1, &app(n)).unwrap()).collect();
        let refused = shares.take(1, &app(99)).unwrap_err();
        assert_eq!(
            refused.error.message,
            "32 effects of uid 1 are under way, the limit; this one was not started"
        );
        assert!(shares.take(2, &app(99)).is_ok());
        drop(held);
        assert!(shares.take(1, &app(99)).is_ok());
        assert!(shares.counts.lock().unwrap().callers.is_empty());
    }

    #[test]
    fn one_hung_application_cannot_hold_up_another() {
        let shares = Shares::default();
        let held: Vec<_> = (0..32).map(|uid| shares.take(uid, &app(0)).unwrap()).collect();
        let refused = shares.take(99, &app(0)).unwrap_err();
        assert_eq!(refused.error.code, ErrorCode::LimitReached);
        assert!(shares.take(99, &app(1)).is_ok());
        drop(held);
        assert!(shares.counts.lock().unwrap().apps.is_empty());
    }
}
