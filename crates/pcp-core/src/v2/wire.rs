//! The types of the protocol as JSON values, both ways, by one table of their members.
//!
//! Serde's derived readers and writers say the same (a test holds them against each other) and stay for programs that
//! want them. They are not what the protocol itself is read with: they take arrays for objects, say what is wrong in words
//! alone, and each of them is several kilobytes of a daemon that has two megabytes.

use std::borrow::ToOwned as _;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use serde_json::{Map, Number, Value};

use super::acknowledgement::{AckState, ActionAck, ExecuteReport, FailureCode, Terminal, Written};
use super::action::{Action, ActionName, MouseButton, ScrollDirection};
use super::authority::{AuthorityGrant, SignedAuthority};
use super::capabilities::{ActionCapability, Capabilities};
use super::claim::{ClaimRecord, Door, KeptOperation};
use super::identifier::Sha256Hash;
use super::observation::{
    Actionability, Bounds, ObservationBackend, SemanticElement, SemanticObservation, SemanticProvenance,
    SurfaceDescriptor, SurfaceRef,
};
use super::read::Fault;
use super::receipt::{
    BackgroundSupport, ContextPreservation, DeliveryRoute, Evidence, InteractionMode, Receipt,
    SessionIsolation,
};
use super::request::ActionRequest;
use super::target::{SemanticTargetRef, TargetRef};
use super::verification::VerificationPolicy;
use crate::action::SafetyClass;
use crate::outcome::Effect;

/// A type of the protocol, or of one of its members.
pub trait Wire: Sized {
    /// As JSON.
    fn to_value(&self) -> Value;

    /// Out of JSON.
    ///
    /// # Errors
    /// What is wrong with it.
    fn of_value(value: &Value) -> Result<Self, Fault>;

    /// Where the member `name` is missing.
    ///
    /// # Errors
    /// [`Fault::MissingKey`], unless the type has something to say for it.
    fn of_nothing(name: &'static str) -> Result<Self, Fault> {
        Err(Fault::MissingKey(name.to_owned()))
    }
}

type Members = Map<String, Value>;

/// The members of an object, each of which has to be one of `names`.
fn members<'v>(value: &'v Value, names: &[&str]) -> Result<&'v Members, Fault> {
    let members = object(value)?;
    let known = members.keys().all(|name| names.contains(&name.as_str()));
    if known { Ok(members) } else { Err(Fault::UnknownKey) }
}

fn object(value: &Value) -> Result<&Members, Fault> {
    match value {
        Value::Object(members) => Ok(members),
        // What some readers take for an object.
        Value::Array(_) => Err(Fault::Spelling),
        _ => Err(Fault::Type),
    }
}

/// The word in the member `kind`.
fn kind(value: &Value) -> Result<&str, Fault> {
    let kind = object(value)?.get("kind").ok_or_else(|| Fault::MissingKey("kind".to_owned()))?;
    kind.as_str().ok_or(Fault::Type)
}

fn member<T: Wire>(members: &Members, name: &'static str) -> Result<T, Fault> {
    members.get(name).map_or_else(|| T::of_nothing(name), T::of_value)
}

fn put(members: &mut Members, name: &'static str, value: Value) {
    members.insert(name.to_owned(), value);
}

macro_rules! objects {
    ($($name:ident { $($field:ident),+ })+) => {
        $(impl Wire for $name {
            fn to_value(&self) -> Value {
                let mut members = Members::new();
                $(put(&mut members, stringify!($field), self.$field.to_value());)+
                Value::Object(members)
            }

            fn of_value(value: &Value) -> Result<Self, Fault> {
                let members = members(value, &[$(stringify!($field)),+])?;
                Ok(Self { $($field: member(members, stringify!($field))?),+ })
            }
        })+
    };
}

macro_rules! kinds {
    ($($name:ident { $($variant:ident = $word:literal { $($field:ident),* }),+ $(,)? })+) => {
        $(impl Wire for $name {
            fn to_value(&self) -> Value {
                let mut members = Members::new();
                match self {
                    $(Self::$variant { $($field),* } => {
                        put(&mut members, "kind", Value::String($word.to_owned()));
                        $(put(&mut members, stringify!($field), $field.to_value());)*
                    })+
                }
                Value::Object(members)
            }

            fn of_value(value: &Value) -> Result<Self, Fault> {
                match kind(value)? {
                    $($word => {
                        let _members = members(value, &["kind", $(stringify!($field)),*])?;
                        Ok(Self::$variant { $($field: member(_members, stringify!($field))?),* })
                    })+
                    _ => Err(Fault::UnknownKind),
                }
            }
        })+
    };
}

macro_rules! words {
    ($($name:ident),+) => {
        $(impl Wire for $name {
            fn to_value(&self) -> Value {
                Value::String(self.as_str().to_owned())
            }

            fn of_value(value: &Value) -> Result<Self, Fault> {
                let word = value.as_str().ok_or(Fault::Type)?;
                Self::ALL.iter().copied().find(|one| one.as_str() == word).ok_or(Fault::UnknownKind)
            }
        })+
    };
}

macro_rules! numbers {
    ($($name:ident by $read:ident),+) => {
        $(impl Wire for $name {
            fn to_value(&self) -> Value {
                Value::from(*self)
            }

            fn of_value(value: &Value) -> Result<Self, Fault> {
                value.$read().and_then(|number| Self::try_from(number).ok()).ok_or(Fault::Type)
            }
        })+
    };
}

numbers! { u16 by as_u64, u32 by as_u64, u64 by as_u64, i32 by as_i64, i64 by as_i64, bool by as_bool }

words! {
    ActionName, BackgroundSupport, ContextPreservation, DeliveryRoute, Door, Effect, FailureCode, InteractionMode,
    MouseButton, ObservationBackend, SafetyClass, ScrollDirection, SessionIsolation
}

objects! {
    ActionAck { protocol_version, operation_id, sequence, action_hash, replayed, state }
    ActionCapability { action, delivery_route, background_support }
    ActionRequest {
        protocol_version, action_version, target_version, verification_version, operation_id, subject, session_id,
        authority, action, target, interaction_mode, deadline_at_ms, verification, safety
    }
    Actionability { visible, enabled, unambiguous, stable, receives_events, invokable, editable }
    AuthorityGrant {
        protocol_version, issuer, key_id, operation_id, subject, session_id, risk, expires_at_ms, policy_generation,
        action_hash
    }
    Bounds { x, y, width, height }
    Capabilities {
        platform, backend, session_isolation, supported_actions, action_capabilities, permissions,
        display_geometry_hash
    }
    ClaimRecord {
        operation_id, action_hash, claimed_at_ms, action_name, delivery_route, session_isolation, interaction_mode
    }
    Evidence { observation_hash, target_fingerprint_hash, display_geometry_hash, observed_at_ms }
    ExecuteReport { acknowledgements }
    KeptOperation { kind, claim, ack }
    Receipt {
        protocol_version, action_name, action_hash, started_at_ms, finished_at_ms, backend, fallback_chain,
        delivery_route, session_isolation, interaction_mode, context_preservation, effect, before, after, warnings
    }
    SemanticElement { tag, element_id, parent_id, fingerprint_hash, role, name, bounds, actionability }
    SemanticObservation {
        protocol_version, observation_id, generation, provenance, observed_at_ms, expires_at_ms, truncated, elements
    }
    SemanticProvenance {
        backend, backend_name, process_id, process_generation, window_id, document_id, display_geometry_hash
    }
    SemanticTargetRef { observation_id, provenance_hash, element_id, fingerprint_hash, generation }
    SignedAuthority { grant, signature }
    SurfaceDescriptor {
        protocol_version, surface, backend, process_id, process_generation, window_id, display_geometry_hash, bounds
    }
    SurfaceRef { id }
}

kinds! {
    AckState { Accepted = "accepted" {}, Executing = "executing" {}, Terminal = "terminal" { terminal } }
    Action {
        Invoke = "invoke" {},
        Click = "click" { button, count, allow_coordinate_fallback },
        TypeText = "type_text" { text, clear, press_return, delay_ms },
        Press = "press" { key, count, delay_ms },
        Paste = "paste" { text },
        Hotkey = "hotkey" { keys },
        Scroll = "scroll" { direction, amount },
        Move = "move" {},
        SetValue = "set_value" { value },
    }
    TargetRef {
        Coordinates = "coordinates" {
            x, y, display_id, display_geometry_hash, snapshot_id, snapshot_content_hash
        },
        Element = "element" { target },
        None = "none" {},
    }
    VerificationPolicy {
        None = "none" {},
        SnapshotChanged = "snapshot_changed" {},
        TargetState = "target_state" { expected },
        TargetValueHash = "target_value_hash" { sha256 },
    }
    Written {
        Succeeded = "succeeded" { receipt, retry_safe },
        Rejected = "rejected" { code, message, retry_safe },
        Failed = "failed" { code, message, retry_safe },
        CancelledBeforeEffect = "cancelled_before_effect" { retry_safe },
        ExpiredBeforeEffect = "expired_before_effect" { retry_safe },
        OutcomeUnknown = "outcome_unknown" { receipt, message, retry_safe },
    }
}

impl Wire for Terminal {
    fn to_value(&self) -> Value {
        Written::from(self.clone()).to_value()
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        Written::of_value(value)?.meant().ok_or(Fault::Type)
    }
}

impl Wire for String {
    fn to_value(&self) -> Value {
        Value::String(self.clone())
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        value.as_str().map(str::to_owned).ok_or(Fault::Type)
    }
}

impl Wire for Sha256Hash {
    fn to_value(&self) -> Value {
        Value::String(std::string::ToString::to_string(self))
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        value.as_str().and_then(Self::parse).ok_or(Fault::Type)
    }
}

impl Wire for Number {
    fn to_value(&self) -> Value {
        Value::Number(self.clone())
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        value.as_number().cloned().ok_or(Fault::Type)
    }
}

impl Wire for Value {
    fn to_value(&self) -> Value {
        self.clone()
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        Ok(value.clone())
    }
}

impl<T: Wire> Wire for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        if value.is_null() { Ok(None) } else { T::of_value(value).map(Some) }
    }

    fn of_nothing(_: &'static str) -> Result<Self, Fault> {
        Ok(None)
    }
}

impl<T: Wire> Wire for Box<T> {
    fn to_value(&self) -> Value {
        (**self).to_value()
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        T::of_value(value).map(Self::new)
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn to_value(&self) -> Value {
        Value::Array(self.iter().map(T::to_value).collect())
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        value.as_array().ok_or(Fault::Type)?.iter().map(T::of_value).collect()
    }
}

impl<T: Wire> Wire for BTreeMap<String, T> {
    fn to_value(&self) -> Value {
        Value::Object(self.iter().map(|(name, value)| (name.clone(), value.to_value())).collect())
    }

    fn of_value(value: &Value) -> Result<Self, Fault> {
        object(value)?.iter().map(|(name, value)| Ok((name.clone(), T::of_value(value)?))).collect()
    }
}
