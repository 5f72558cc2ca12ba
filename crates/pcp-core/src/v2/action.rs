//! What may be done to an element, and how much of it at once.

use core::fmt;
use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};

use super::invalid::InvalidRequest;
use super::receipt::DeliveryRoute;
use crate::words::words;

/// Longest text in bytes that is typed, pasted or set at once.
pub const MAX_TEXT_BYTES: usize = 16_384;
/// Longest name of a key in bytes.
pub const MAX_KEY_BYTES: usize = 64;
/// Most keys of one chord.
pub const MAX_HOTKEY_KEYS: usize = 8;
/// Most clicks of one action: a triple click.
pub const MAX_CLICKS: u32 = 3;
/// Most presses of one key by one action.
pub const MAX_PRESSES: u32 = 100;
/// Most steps of one scroll.
pub const MAX_AMOUNT: u32 = 100;
/// Longest pause between two keys in milliseconds.
pub const MAX_DELAY_MS: u64 = 1_000;

words! {
    /// The button of a click.
    MouseButton: "mouse button" {
        /// The first.
        Left = "left",
        /// The second.
        Right = "right",
        /// The wheel.
        Middle = "middle",
    }
}

words! {
    /// Where a scroll goes.
    ScrollDirection: "scroll direction" {
        /// Towards the top.
        Up = "up",
        /// Towards the bottom.
        Down = "down",
        /// Towards the left.
        Left = "left",
        /// Towards the right.
        Right = "right",
    }
}

words! {
    /// The kinds of action.
    ActionName: "action" {
        /// The element's own activation.
        Invoke = "invoke",
        /// A click of the pointer.
        Click = "click",
        /// Text by keys.
        TypeText = "type_text",
        /// One key.
        Press = "press",
        /// Text by the clipboard.
        Paste = "paste",
        /// A chord.
        Hotkey = "hotkey",
        /// A scroll.
        Scroll = "scroll",
        /// The pointer, moved.
        Move = "move",
        /// The element's value, replaced.
        SetValue = "set_value",
    }
}

impl ActionName {
    /// Whether the action can travel on `route`: the fixed table of S3.
    #[must_use]
    pub const fn travels_on(self, route: DeliveryRoute) -> bool {
        match self {
            Self::Invoke | Self::SetValue => matches!(route, DeliveryRoute::TargetAddressed),
            Self::Scroll => matches!(route, DeliveryRoute::TargetAddressed | DeliveryRoute::Pointer),
            Self::Click | Self::TypeText | Self::Press | Self::Paste | Self::Hotkey | Self::Move => {
                matches!(route, DeliveryRoute::Pointer)
            }
        }
    }
}

/// One action. Its `Debug` keeps texts, values and keys to itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// The element's own activation; never a click of the pointer.
    Invoke {},
    /// A click of the pointer.
    Click {
        /// Which button.
        button: MouseButton,
        /// How many, 1 to 3.
        count: u32,
        /// Whether a place on the screen will do.
        allow_coordinate_fallback: bool,
    },
    /// Text by keys.
    TypeText {
        /// 1 to 16 384 bytes.
        text: String,
        /// Whether the old text goes first.
        clear: bool,
        /// Whether the return key ends it.
        press_return: bool,
        /// Pause between two keys, at most 1 000.
        delay_ms: Option<u64>,
    },
    /// One key.
    Press {
        /// Its name, 1 to 64 bytes.
        key: String,
        /// How many times, 1 to 100.
        count: u32,
        /// Pause between two presses, at most 1 000.
        delay_ms: Option<u64>,
    },
    /// Text by the clipboard.
    Paste {
        /// 1 to 16 384 bytes.
        text: String,
    },
    /// A chord.
    Hotkey {
        /// 1 to 8 names of 1 to 64 bytes.
        keys: Vec<String>,
    },
    /// A scroll.
    Scroll {
        /// Where to.
        direction: ScrollDirection,
        /// How many steps, 1 to 100.
        amount: u32,
    },
    /// The pointer, moved.
    Move {},
    /// The element's value, replaced.
    SetValue {
        /// 0 to 16 384 bytes.
        value: String,
    },
}

impl Action {
    /// Its kind.
    #[must_use]
    pub const fn name(&self) -> ActionName {
        match self {
            Self::Invoke {} => ActionName::Invoke,
            Self::Click { .. } => ActionName::Click,
            Self::TypeText { .. } => ActionName::TypeText,
            Self::Press { .. } => ActionName::Press,
            Self::Paste { .. } => ActionName::Paste,
            Self::Hotkey { .. } => ActionName::Hotkey,
            Self::Scroll { .. } => ActionName::Scroll,
            Self::Move {} => ActionName::Move,
            Self::SetValue { .. } => ActionName::SetValue,
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvalidRequest> {
        match self {
            Self::Invoke {} | Self::Move {} => Ok(()),
            Self::Click { count, .. } => {
                bound("action.count", u64::from(*count), "clicks", 1, MAX_CLICKS.into())
            }
            Self::TypeText { text, delay_ms, .. } => {
                bytes("action.text", text, 1, MAX_TEXT_BYTES)?;
                delay(*delay_ms)
            }
            Self::Press { key, count, delay_ms } => {
                bytes("action.key", key, 1, MAX_KEY_BYTES)?;
                bound("action.count", u64::from(*count), "presses", 1, MAX_PRESSES.into())?;
                delay(*delay_ms)
            }
            Self::Paste { text } => bytes("action.text", text, 1, MAX_TEXT_BYTES),
            Self::Hotkey { keys } => {
                bound("action.keys", keys.len() as u64, "keys", 1, MAX_HOTKEY_KEYS as u64)?;
                keys.iter().try_for_each(|key| bytes("action.keys[]", key, 1, MAX_KEY_BYTES))
            }
            Self::Scroll { amount, .. } => {
                bound("action.amount", u64::from(*amount), "steps", 1, MAX_AMOUNT.into())
            }
            Self::SetValue { value } => bytes("action.value", value, 0, MAX_TEXT_BYTES),
        }
    }
}

fn bound(
    field: &'static str,
    value: u64,
    unit: &'static str,
    least: u64,
    most: u64,
) -> Result<(), InvalidRequest> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(InvalidRequest::Bound { field, value, unit, least, most })
    }
}

fn bytes(field: &'static str, text: &str, least: usize, most: usize) -> Result<(), InvalidRequest> {
    bound(field, text.len() as u64, "bytes", least as u64, most as u64)
}

fn delay(delay_ms: Option<u64>) -> Result<(), InvalidRequest> {
    delay_ms.map_or(Ok(()), |delay| bound("action.delay_ms", delay, "ms", 0, MAX_DELAY_MS))
}

/// What stands for a text that is nobody's business.
pub(super) const REDACTED: &str = "[redacted]";

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(self.name().as_str());
        match self {
            Self::Invoke {} | Self::Move {} => {}
            Self::Click { button, count, allow_coordinate_fallback } => {
                out.field("button", button).field("count", count);
                out.field("allow_coordinate_fallback", allow_coordinate_fallback);
            }
            Self::TypeText { clear, press_return, delay_ms, .. } => {
                out.field("text", &REDACTED).field("clear", clear);
                out.field("press_return", press_return).field("delay_ms", delay_ms);
            }
            Self::Press { count, delay_ms, .. } => {
                out.field("key", &REDACTED).field("count", count).field("delay_ms", delay_ms);
            }
            Self::Paste { .. } => {
                out.field("text", &REDACTED);
            }
            Self::Hotkey { .. } => {
                out.field("keys", &REDACTED);
            }
            Self::Scroll { direction, amount } => {
                out.field("direction", direction).field("amount", amount);
            }
            Self::SetValue { .. } => {
                out.field("value", &REDACTED);
            }
        }
        out.finish()
    }
}
