//! What an application can probably do, from its categories and its toolkit, before it ever ran.
//!
//! Two reviewed tables, `data/predictions.txt` and `data/actions.txt`, say it; they are part of the program and parsed
//! once. A prediction is no promise: it cannot be executed until a live element is bound to it. Start with [`predict`].

mod table;

use std::sync::{Arc, LazyLock};

use pcp_core::{
    AppId, CapabilityDescriptor, CapabilityId, DetectionMethod, Domain, SignatureStatus, StabilityLevel,
    TrustLevel,
};

use crate::toolkit::Toolkit;
use table::Table;

/// Most categories of an application that are looked at: the richest entry known has fewer than ten.
pub const MAX_CATEGORIES: usize = 64;

/// The word for the toolkit of an application whose toolkit cannot be told.
pub const UNKNOWN_TOOLKIT: &str = "unknown";

/// The tables as they are in the program; a test holds them to their rules.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let read = Table::read(include_str!("../data/actions.txt"), include_str!("../data/predictions.txt"));
    read.unwrap_or_default()
});

/// A schema that says nothing: only a signed manifest types its parameters (C26).
static ANY: LazyLock<Arc<str>> = LazyLock::new(|| "{}".into());

/// There is no manifest whose version it could be.
static NO_VERSION: LazyLock<Arc<str>> = LazyLock::new(|| "".into());

/// One action that an application probably offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prediction {
    /// The action, the last part of a capability's id.
    pub action: &'static str,
    /// What it does, for people.
    pub description: &'static str,
    /// The category that says so; `*` is every application's.
    pub category: &'static str,
    /// Whether it changes anything, by the words of the action.
    pub side_effects: bool,
}

/// The actions of an application with these categories, drawn by this toolkit: each once, those of the more special
/// category first. Categories that the table does not know say nothing.
#[must_use]
pub fn predictions(categories: &[impl AsRef<str>], toolkit: Option<Toolkit>) -> Vec<Prediction> {
    let found = TABLE.of(categories, toolkit);
    let plain = |(category, action): (&table::Word, &table::Action)| Prediction {
        action: action.word.text,
        description: action.description.text,
        category: category.text,
        side_effects: action.side_effects,
    };
    found.into_iter().map(plain).collect()
}

/// The same as capabilities of `app`: predicted, not executable, unsigned. An action that would make an
/// id too long is left out.
#[must_use]
pub fn predict(
    app: &AppId,
    categories: &[impl AsRef<str>],
    toolkit: Option<Toolkit>,
) -> Vec<CapabilityDescriptor> {
    let found = TABLE.of(categories, toolkit).into_iter();
    found.filter_map(|(category, action)| descriptor(app, category, action)).collect()
}

fn descriptor(app: &AppId, category: &table::Word, action: &table::Action) -> Option<CapabilityDescriptor> {
    let id = CapabilityId::from_parts(Domain::App, app.as_str(), action.word.text).ok()?;
    Some(CapabilityDescriptor {
        app_id: app.clone(),
        domain: Domain::App,
        name: Arc::clone(&action.word.shared),
        description: Arc::clone(&action.description.shared),
        category: Arc::clone(&category.shared),
        input_schema: Arc::clone(&ANY),
        output_schema: Arc::clone(&ANY),
        method: DetectionMethod::Desktop,
        stability: StabilityLevel::Predicted,
        version: Arc::clone(&NO_VERSION),
        side_effects: action.side_effects,
        confirmation_required: false,
        minimum_trust: TrustLevel::OBSERVE,
        validates_params: false,
        executable: false,
        signature: SignatureStatus::Unsigned,
        clear_parameters: Box::default(),
        id,
    })
}

/// Whether the table has actions for this category.
#[must_use]
pub fn knows_category(category: &str) -> bool {
    TABLE.knows(category)
}

/// The word for a toolkit that may not be known.
#[must_use]
pub fn toolkit_word(toolkit: Option<Toolkit>) -> &'static str {
    toolkit.map_or(UNKNOWN_TOOLKIT, Toolkit::as_str)
}
