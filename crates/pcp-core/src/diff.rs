//! What a re-detection changed of one application: one value, not one event per item.

use std::boxed::Box;
use std::sync::Arc;
use std::vec::Vec;

use crate::adapter::AdapterState;
use crate::capability::CapabilityDescriptor;
use crate::id::{AppId, CapabilityId};
use crate::ports::{AppEntry, DeclaredApp};
use crate::words::words;

words! {
    /// A field of a capability or of an application that can change while its id stays.
    ChangedField: "changed field" {
        /// The name for people.
        Name = "name",
        /// The sentence for people.
        Description = "description",
        /// The author's category.
        Category = "category",
        /// The schema of the parameters.
        InputSchema = "input_schema",
        /// The schema of the result.
        OutputSchema = "output_schema",
        /// How it was found.
        Method = "method",
        /// How far its shape may be relied on.
        Stability = "stability",
        /// The version.
        Version = "version",
        /// Whether invoking it changes anything.
        SideEffects = "side_effects",
        /// Whether the author asks for confirmation.
        ConfirmationRequired = "confirmation_required",
        /// The least trust of a caller.
        MinimumTrust = "minimum_trust",
        /// Whether the application checks parameters itself.
        ValidatesParams = "validates_params",
        /// Whether it can be executed now.
        Executable = "executable",
        /// What is known of the signature.
        Signature = "signature",
        /// The parameters that may stand in a record in clear.
        ClearParameters = "clear_parameters",
        /// The toolkit of the application's windows.
        Toolkit = "toolkit",
        /// Why the application offers nothing.
        Problem = "problem",
    }
}

/// What a field held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// Nothing.
    Absent,
    /// A text or a word of a closed set.
    Text(Arc<str>),
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(u64),
    /// Several texts.
    Texts(Box<[Box<str>]>),
}

/// One field that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// Which.
    pub field: ChangedField,
    /// What it was.
    pub old: FieldValue,
    /// What it is now.
    pub new: FieldValue,
}

/// A capability that stayed and is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityChange {
    /// Its id.
    pub id: CapabilityId,
    /// What changed, in the order of [`ChangedField`]; never empty.
    pub fields: Vec<FieldChange>,
}

/// Everything that one change of the registry did to one application. Each list is sorted by id and holds at
/// most [`crate::manifest::MAX_CAPABILITIES_PER_APP`] rows, because the registry holds no more of one application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityDiff {
    /// The application.
    pub app_id: AppId,
    /// The state of the adapter that served it before; `None` when the application was not registered.
    pub previous_state: Option<AdapterState>,
    /// The state of the adapter that serves it now; `None` when the application is gone.
    pub new_state: Option<AdapterState>,
    /// What changed of the application itself.
    pub app: Vec<FieldChange>,
    /// What it offers now and did not before.
    pub added: Vec<Arc<CapabilityDescriptor>>,
    /// What it no longer offers.
    pub removed: Vec<CapabilityId>,
    /// What is still offered, changed.
    pub changed: Vec<CapabilityChange>,
}

impl CapabilityDiff {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.previous_state == self.new_state
            && self.app.is_empty()
            && self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
    }
}

impl From<&Arc<str>> for FieldValue {
    fn from(text: &Arc<str>) -> Self {
        Self::Text(text.clone())
    }
}

impl From<&bool> for FieldValue {
    fn from(flag: &bool) -> Self {
        Self::Flag(*flag)
    }
}

impl From<&Box<[Box<str>]>> for FieldValue {
    fn from(texts: &Box<[Box<str>]>) -> Self {
        Self::Texts(texts.clone())
    }
}

impl From<&Option<Arc<str>>> for FieldValue {
    fn from(text: &Option<Arc<str>>) -> Self {
        text.as_ref().map_or(Self::Absent, Self::from)
    }
}

impl From<&crate::principal::TrustLevel> for FieldValue {
    fn from(trust: &crate::principal::TrustLevel) -> Self {
        Self::Number(trust.get().into())
    }
}

macro_rules! from_words {
    ($($name:ident),+) => {
        $(impl From<&crate::capability::$name> for FieldValue {
            fn from(word: &crate::capability::$name) -> Self {
                Self::Text(word.as_str().into())
            }
        })+
    };
}
from_words!(DetectionMethod, StabilityLevel, SignatureStatus);

/// Collects the fields that differ; a field of equal value costs nothing.
macro_rules! differing {
    ($old:expr, $new:expr, $($field:ident as $name:ident),+ $(,)?) => {{
        let mut changes = Vec::new();
        $(if $old.$field != $new.$field {
            changes.push(FieldChange {
                field: ChangedField::$name,
                old: FieldValue::from(&$old.$field),
                new: FieldValue::from(&$new.$field),
            });
        })+
        changes
    }};
}

impl CapabilityDescriptor {
    /// The fields in which `new` differs. Id, application and domain are what it is, not what changes: the first two
    /// are compared before, and the domain is that of the id.
    #[must_use]
    pub fn changes_to(&self, new: &Self) -> Vec<FieldChange> {
        differing!(
            self,
            new,
            name as Name,
            description as Description,
            category as Category,
            input_schema as InputSchema,
            output_schema as OutputSchema,
            method as Method,
            stability as Stability,
            version as Version,
            side_effects as SideEffects,
            confirmation_required as ConfirmationRequired,
            minimum_trust as MinimumTrust,
            validates_params as ValidatesParams,
            executable as Executable,
            signature as Signature,
            clear_parameters as ClearParameters,
        )
    }
}

impl AppEntry {
    /// The fields in which `new` differs. Its capabilities are compared one by one, elsewhere.
    #[must_use]
    pub fn changes_to(&self, new: &Self) -> Vec<FieldChange> {
        let mut changes = differing!(
            self,
            new,
            method as Method,
            version as Version,
            signature as Signature,
            problem as Problem,
        );
        let mut note = |field, old: Option<Arc<str>>, new: Option<Arc<str>>| {
            if old != new {
                changes.push(FieldChange { field, old: FieldValue::from(&old), new: FieldValue::from(&new) });
            }
        };
        let (old, new) = (self.declared.as_deref(), new.declared.as_deref());
        let name = |app: &DeclaredApp| app.name.clone();
        let categories = |app: &DeclaredApp| app.categories.join(";").into();
        let toolkit = |app: &DeclaredApp| app.toolkit.into();
        note(ChangedField::Name, old.map(name), new.map(name));
        note(ChangedField::Category, old.map(categories), new.map(categories));
        note(ChangedField::Toolkit, old.map(toolkit), new.map(toolkit));
        changes
    }
}
