//! Core's events as they stand in `data_json` of a PushEvent, one shape for each topic.
//!
//! The daemon writes them by [`EventTexts`], once for all subscribers; a client reads them by [`EventData::read`].

use pcp_core::manifest::MAX_CAPABILITIES_PER_APP;
use pcp_core::{AdapterState, DetectionMethod, Event, EventTopic};
use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::embedded::Json;
use crate::error::{Error, cut};
use crate::payloads::CapabilityRow;
use crate::reader::read;
use crate::text::Text;

mod field;
mod texts;

pub use field::{CapabilityChangeData, FieldData, ValueData};
pub use texts::EventTexts;

/// What an event tells besides its topic and its application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum EventData<'a> {
    /// A capability that was not there before.
    CapabilityRegistered(CapabilityRegisteredData<'a>),
    /// What a re-detection changed of one application.
    CapabilityDiff(Box<CapabilityDiffData<'a>>),
    /// An adapter works, or no longer does.
    AdapterStateChanged(AdapterStateData<'a>),
    /// An application that was not there before.
    AppAdded(AppAddedData),
    /// An application that is gone.
    AppRemoved(AppRemovedData),
    /// A manifest that is not believed.
    ManifestInvalid(ManifestInvalidData<'a>),
    /// A scan has come to its end.
    DetectionCompleted(DetectionCompletedData),
}

/// Of `capability_registered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityRegisteredData<'a> {
    /// The capability.
    #[serde(borrow)]
    pub id: Text<'a>,
}

/// Of `capability_diff`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityDiffData<'a> {
    /// The adapter's state before; absent when the application was not registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_state: Option<AdapterState>,
    /// The adapter's state now; absent when the application is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_state: Option<AdapterState>,
    /// What changed of the application itself.
    #[serde(borrow, default, deserialize_with = "bounded::list::<_, _, MAX_CAPABILITIES_PER_APP>")]
    pub app: Vec<FieldData<'a>>,
    /// What it offers now and did not before.
    #[serde(borrow, default, deserialize_with = "bounded::list::<_, _, MAX_CAPABILITIES_PER_APP>")]
    pub added: Vec<CapabilityRow<'a>>,
    /// What it no longer offers.
    #[serde(borrow, default, deserialize_with = "bounded::list::<_, _, MAX_CAPABILITIES_PER_APP>")]
    pub removed: Vec<Text<'a>>,
    /// What it still offers, changed.
    #[serde(borrow, default, deserialize_with = "bounded::list::<_, _, MAX_CAPABILITIES_PER_APP>")]
    pub changed: Vec<CapabilityChangeData<'a>>,
}

/// Of `adapter_state_changed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdapterStateData<'a> {
    /// Which adapter.
    pub method: DetectionMethod,
    /// Its state before; absent for a new instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AdapterState>,
    /// Its state now.
    pub to: AdapterState,
    /// Which of its instances.
    pub generation: u64,
    /// Why.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
}

/// Of `app_added`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppAddedData {
    /// How it was found.
    pub method: DetectionMethod,
}

/// Of `app_removed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppRemovedData {}

/// Of `manifest_invalid`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestInvalidData<'a> {
    /// Which rule it breaks.
    #[serde(borrow)]
    pub problem: Text<'a>,
}

/// Of `detection_completed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectionCompletedData {
    /// Applications that are registered now.
    pub apps: u64,
    /// Capabilities that are registered now.
    pub capabilities: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

impl<'a> From<&'a Event> for EventData<'a> {
    fn from(event: &'a Event) -> Self {
        match event {
            Event::CapabilityRegistered { id, .. } => {
                Self::CapabilityRegistered(CapabilityRegisteredData { id: id.as_str().into() })
            }
            Event::CapabilityDiff(diff) => Self::CapabilityDiff(Box::new(CapabilityDiffData {
                previous_state: diff.previous_state,
                new_state: diff.new_state,
                app: diff.app.iter().map(FieldData::from).collect(),
                added: diff.added.iter().map(|added| CapabilityRow::from(&**added)).collect(),
                removed: diff.removed.iter().map(|id| id.as_str().into()).collect(),
                changed: diff.changed.iter().map(CapabilityChangeData::from).collect(),
            })),
            Event::AdapterStateChanged { method, from, to, generation, reason } => {
                Self::AdapterStateChanged(AdapterStateData {
                    method: *method,
                    from: *from,
                    to: *to,
                    generation: *generation,
                    reason: (!reason.is_empty()).then(|| (&**reason).into()),
                })
            }
            Event::AppAdded { method, .. } => Self::AppAdded(AppAddedData { method: *method }),
            Event::AppRemoved { .. } => Self::AppRemoved(AppRemovedData {}),
            Event::ManifestInvalid { problem, .. } => {
                Self::ManifestInvalid(ManifestInvalidData { problem: (&**problem).into() })
            }
            Event::DetectionCompleted { apps, capabilities, duration_ms } => {
                Self::DetectionCompleted(DetectionCompletedData {
                    apps: *apps,
                    capabilities: *capabilities,
                    duration_ms: *duration_ms,
                })
            }
        }
    }
}

impl<'a> EventData<'a> {
    /// Reads `data_json` of an event of this topic.
    ///
    /// # Errors
    /// [`Error::Payload`] says what is not of its shape.
    pub fn read(topic: EventTopic, data: Json<'a>) -> Result<Self, Error> {
        let text = data.as_str();
        let data = match topic {
            EventTopic::CapabilityRegistered => read(text).map(Self::CapabilityRegistered),
            EventTopic::CapabilityDiff => read(text).map(|diff| Self::CapabilityDiff(Box::new(diff))),
            EventTopic::AdapterStateChanged => read(text).map(Self::AdapterStateChanged),
            EventTopic::AppAdded => read(text).map(Self::AppAdded),
            EventTopic::AppRemoved => read(text).map(Self::AppRemoved),
            EventTopic::ManifestInvalid => read(text).map(Self::ManifestInvalid),
            EventTopic::DetectionCompleted => read(text).map(Self::DetectionCompleted),
        };
        data.map_err(|error| Error::Payload { message_type: topic.as_str(), error })
    }

    /// The text of `data_json`.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        serde_json::to_writer(out, self)
            .map_err(|error| Error::Write { what: "an event", problem: cut(error) })
    }
}
