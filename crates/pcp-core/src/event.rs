//! What happens, as a closed set, and who wants to hear of it.

use std::boxed::Box;
use std::string::String;
use std::sync::Arc;

use thiserror::Error;

use crate::adapter::AdapterState;
use crate::capability::DetectionMethod;
use crate::diff::CapabilityDiff;
use crate::domain::Domain;
use crate::glob;
use crate::id::{AppId, CapabilityId};
use crate::overflow::OverflowStrategy;
use crate::words::words;

/// Longest application glob of a subscription in bytes. Every published event is matched against every
/// subscription's glob on one thread, so it is shorter than the glob of a query.
pub const MAX_FILTER_GLOB_BYTES: usize = 128;

words! {
    /// What kind of event it is.
    EventTopic: "event topic" {
        /// A capability that was not there before.
        CapabilityRegistered = "capability_registered",
        /// What a re-detection changed of one application.
        CapabilityDiff = "capability_diff",
        /// An adapter works, or no longer does.
        AdapterStateChanged = "adapter_state_changed",
        /// An application that was not there before.
        AppAdded = "app_added",
        /// An application that is gone.
        AppRemoved = "app_removed",
        /// A manifest that is not believed.
        ManifestInvalid = "manifest_invalid",
        /// A scan has come to its end.
        DetectionCompleted = "detection_completed",
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A capability that was not there before.
    CapabilityRegistered {
        /// The capability.
        id: CapabilityId,
        /// The application that serves it.
        app_id: AppId,
    },
    /// What a re-detection changed of one application.
    CapabilityDiff(CapabilityDiff),
    /// An adapter works, or no longer does.
    AdapterStateChanged {
        /// Which adapter.
        method: DetectionMethod,
        /// Its state before; `None` for a new instance.
        from: Option<AdapterState>,
        /// Its state now.
        to: AdapterState,
        /// Which of its instances.
        generation: u64,
        /// Why, for people; empty when there is nothing to say.
        reason: Arc<str>,
    },
    /// An application that was not there before.
    AppAdded {
        /// The application.
        app_id: AppId,
        /// How it was found.
        method: DetectionMethod,
    },
    /// An application that is gone.
    AppRemoved {
        /// The application.
        app_id: AppId,
    },
    /// A manifest that is not believed: nothing it declares is registered.
    ManifestInvalid {
        /// The application it is for.
        app_id: AppId,
        /// Which rule it breaks, for people.
        problem: Arc<str>,
    },
    /// A scan has come to its end.
    DetectionCompleted {
        /// Applications that are registered now.
        apps: u64,
        /// Capabilities that are registered now.
        capabilities: u64,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
}

impl Event {
    /// What kind of event it is.
    #[must_use]
    pub const fn topic(&self) -> EventTopic {
        match self {
            Self::CapabilityRegistered { .. } => EventTopic::CapabilityRegistered,
            Self::CapabilityDiff(_) => EventTopic::CapabilityDiff,
            Self::AdapterStateChanged { .. } => EventTopic::AdapterStateChanged,
            Self::AppAdded { .. } => EventTopic::AppAdded,
            Self::AppRemoved { .. } => EventTopic::AppRemoved,
            Self::ManifestInvalid { .. } => EventTopic::ManifestInvalid,
            Self::DetectionCompleted { .. } => EventTopic::DetectionCompleted,
        }
    }

    /// The application it is about; `None` where it is about none.
    #[must_use]
    pub const fn app_id(&self) -> Option<&AppId> {
        match self {
            Self::CapabilityRegistered { app_id, .. }
            | Self::AppAdded { app_id, .. }
            | Self::AppRemoved { app_id }
            | Self::ManifestInvalid { app_id, .. } => Some(app_id),
            Self::CapabilityDiff(diff) => Some(&diff.app_id),
            Self::AdapterStateChanged { .. } | Self::DetectionCompleted { .. } => None,
        }
    }

    /// The domain that a subscriber has to reach to hear of it: the highest that any of its capabilities has.
    #[must_use]
    pub fn domain(&self) -> Domain {
        match self {
            Self::CapabilityRegistered { id, .. } => id.domain(),
            Self::CapabilityDiff(diff) => {
                let added = diff.added.iter().map(|added| added.domain);
                let removed = diff.removed.iter().map(CapabilityId::domain);
                let changed = diff.changed.iter().map(|changed| changed.id.domain());
                added.chain(removed).chain(changed).max_by_key(|domain| domain.level()).unwrap_or(Domain::App)
            }
            _ => Domain::App,
        }
    }
}

/// Why a filter was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The glob is too long.
    #[error("the application glob of a subscription has {bytes} bytes, the limit is {MAX_FILTER_GLOB_BYTES}")]
    Glob {
        /// Its length.
        bytes: usize,
    },
}

/// Which events a subscriber hears of: those that fit every part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    reaches: Domain,
    /// One bit for each topic.
    topics: u32,
    app: Option<Box<str>>,
    domain: Option<Domain>,
}

impl EventFilter {
    /// Everything that a subscriber of this domain may hear of. The wall is part of every filter, so that nobody can
    /// forget it.
    #[must_use]
    pub const fn reached_by(domain: Domain) -> Self {
        Self { reaches: domain, topics: u32::MAX, app: None, domain: None }
    }

    /// Only these topics; none means all.
    #[must_use]
    pub fn topics(mut self, topics: impl IntoIterator<Item = EventTopic>) -> Self {
        let bits = topics.into_iter().fold(0, |bits, topic| bits | bit(topic));
        self.topics = if bits == 0 { u32::MAX } else { bits };
        self
    }

    /// Only events about applications that match this glob; `*` spans dots.
    ///
    /// # Errors
    /// [`FilterError::Glob`].
    pub fn app(mut self, glob: impl Into<String>) -> Result<Self, FilterError> {
        let glob = glob.into();
        if glob.len() > MAX_FILTER_GLOB_BYTES {
            return Err(FilterError::Glob { bytes: glob.len() });
        }
        self.app = Some(glob.into_boxed_str());
        Ok(self)
    }

    /// Only events of this domain.
    #[must_use]
    pub const fn domain(mut self, domain: Domain) -> Self {
        self.domain = Some(domain);
        self
    }

    /// Whether the subscriber hears of `event`.
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        let domain = event.domain();
        self.topics & bit(event.topic()) != 0
            && self.reaches.reaches(domain)
            && self.domain.is_none_or(|wanted| wanted == domain)
            && self
                .app
                .as_deref()
                .is_none_or(|wanted| event.app_id().is_some_and(|app| glob::spans(wanted, app.as_str())))
    }
}

const fn bit(topic: EventTopic) -> u32 {
    1 << topic as u32
}

/// Whose a subscription is, for the limits on how many one may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscriber {
    /// Which connection, as the daemon numbers them.
    pub connection: u64,
    /// The kernel's user id behind it.
    pub uid: u32,
}

/// What a subscriber asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscribe {
    /// Whose subscription it is.
    pub subscriber: Subscriber,
    /// Which events.
    pub filter: EventFilter,
    /// How many may wait for it; `None` takes the bus's default.
    pub queue: Option<usize>,
    /// What happens to those that find no room.
    pub overflow: OverflowStrategy,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn registered(id: &str) -> Event {
        let id = CapabilityId::parse(id).unwrap();
        Event::CapabilityRegistered { app_id: AppId::parse(id.app()).unwrap(), id }
    }

    fn completed() -> Event {
        Event::DetectionCompleted { apps: 1, capabilities: 2, duration_ms: 3 }
    }

    #[test]
    fn a_subscriber_hears_of_nothing_behind_its_wall() {
        let power = registered("system.power.shutdown");
        for (holds, hears) in [(Domain::App, false), (Domain::Compositor, false), (Domain::System, true)] {
            assert_eq!(EventFilter::reached_by(holds).matches(&power), hears, "{holds}");
            assert!(EventFilter::reached_by(holds).matches(&registered("app.mail.read")));
        }
    }

    #[test]
    fn a_diff_lies_behind_the_highest_wall_of_its_capabilities() {
        let diff = |removed: &[&str]| {
            Event::CapabilityDiff(CapabilityDiff {
                app_id: AppId::parse("org.x").unwrap(),
                previous_state: None,
                new_state: None,
                app: Vec::new(),
                added: Vec::new(),
                removed: removed.iter().map(|id| CapabilityId::parse(id).unwrap()).collect(),
                changed: Vec::new(),
            })
        };
        assert_eq!(diff(&[]).domain(), Domain::App);
        assert_eq!(diff(&["app.org.x.a", "compositor.org.x.b"]).domain(), Domain::Compositor);
        assert_eq!(diff(&["system.org.x.a", "app.org.x.b"]).domain(), Domain::System);
    }

    #[test]
    fn every_part_of_a_filter_has_to_fit() {
        let all = || EventFilter::reached_by(Domain::System);
        let read = registered("app.org.mail.read");
        let table = [
            (all(), true, true),
            (all().topics([]), true, true),
            (all().topics([EventTopic::CapabilityRegistered]), true, false),
            (all().topics([EventTopic::AppAdded, EventTopic::DetectionCompleted]), false, true),
            (all().app("org.*").unwrap(), true, false),
            (all().app("com.*").unwrap(), false, false),
            (all().domain(Domain::App), true, true),
            (all().domain(Domain::System), false, false),
            (all().topics([EventTopic::AppAdded]).app("org.*").unwrap(), false, false),
        ];
        for (filter, hears_read, hears_completed) in table {
            assert_eq!(
                (filter.matches(&read), filter.matches(&completed())),
                (hears_read, hears_completed),
                "{filter:?}"
            );
        }
    }

    #[test]
    fn a_glob_has_at_most_its_limit() {
        let filter = |bytes: usize| EventFilter::reached_by(Domain::App).app("*".repeat(bytes));
        assert!(filter(MAX_FILTER_GLOB_BYTES).is_ok());
        let error = filter(MAX_FILTER_GLOB_BYTES + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the application glob of a subscription has 129 bytes, the limit is 128"
        );
    }

    #[test]
    fn every_topic_has_a_bit_of_its_own() {
        let bits = EventTopic::ALL.iter().fold(0_u32, |bits, topic| bits | bit(*topic));
        assert_eq!(bits.count_ones() as usize, EventTopic::ALL.len());
    }
}
