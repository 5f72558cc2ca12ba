//! From a capability and its parameters to one typed call, and from the call to its result.
//!
//! The daemon has checked the parameters against the manifest's schema; they are read again here because an
//! application believes nobody, and because only typed values can be worked with.

use pcp_core::{CapabilityId, Domain};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::Error;
use crate::export::{Format, export};
use crate::note::{check_body, check_title};
use crate::store::{Change, MAX_PAGE, Match, Store, check_query};

/// The application's id.
pub const APP_ID: &str = "org.portal.notes";
/// What the application serves: the last part of each capability's id.
pub const ACTIONS: [&str; 8] = ["list", "search", "read", "create", "edit", "delete", "restore", "export"];
/// Largest result in bytes: one frame of the protocol carries 1 MiB, and the envelope needs some of it.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024 - 16 * 1024;

/// Matches of a search that does not say how many it wants: a screen.
const DEFAULT_MATCHES: usize = 20;
/// Rows of a list that does not say how many it wants.
const DEFAULT_ROWS: usize = 50;

/// One call, ready to run.
#[derive(Debug)]
pub(crate) enum Call {
    List { after: u64, limit: usize },
    Search { query: String, after: u64, limit: usize },
    Read { id: u64 },
    Create { title: String, body: String },
    Edit { id: u64, change: Change },
    Delete { id: u64, expected_revision: Option<u64> },
    Restore { id: u64, expected_revision: Option<u64> },
    Export { id: u64, format: Format },
}

/// The parameters of each capability, as the manifest declares them.
mod params {
    use serde::Deserialize;

    use crate::export::Format;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct List {
        #[serde(default)]
        pub(super) after: u64,
        pub(super) limit: Option<usize>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Search {
        pub(super) query: String,
        #[serde(default)]
        pub(super) after: u64,
        pub(super) limit: Option<usize>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Id {
        pub(super) id: u64,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Create {
        pub(super) title: String,
        #[serde(default)]
        pub(super) body: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Edit {
        pub(super) id: u64,
        pub(super) title: Option<String>,
        pub(super) body: Option<String>,
        pub(super) expected_revision: Option<u64>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    /// Of `delete`, and of its inverse `restore`.
    pub(super) struct Delete {
        pub(super) id: u64,
        pub(super) expected_revision: Option<u64>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Export {
        pub(super) id: u64,
        pub(super) format: Format,
    }
}

impl Call {
    /// Reads the parameters of a capability and checks what can be checked without the store.
    ///
    /// # Errors
    /// [`Error::NoCapability`] or [`Error::Parameter`].
    pub(crate) fn parse(capability: &CapabilityId, json: &str) -> Result<Self, Error> {
        let unknown = || Error::NoCapability(capability.to_string());
        if capability.domain() != Domain::App || capability.app() != APP_ID {
            return Err(unknown());
        }
        let call = match capability.action() {
            "list" => {
                let params::List { after, limit } = read(json)?;
                Self::List { after, limit: limit.unwrap_or(DEFAULT_ROWS).min(MAX_PAGE) }
            }
            "search" => {
                let params::Search { query, after, limit } = read(json)?;
                Self::Search { query, after, limit: limit.unwrap_or(DEFAULT_MATCHES) }
            }
            "read" => Self::Read { id: read::<params::Id>(json)?.id },
            "create" => {
                let params::Create { title, body } = read(json)?;
                Self::Create { title, body }
            }
            "edit" => {
                let params::Edit { id, title, body, expected_revision } = read(json)?;
                Self::Edit { id, change: Change { title, body, expected_revision } }
            }
            "delete" => {
                let params::Delete { id, expected_revision } = read(json)?;
                Self::Delete { id, expected_revision }
            }
            "restore" => {
                let params::Delete { id, expected_revision } = read(json)?;
                Self::Restore { id, expected_revision }
            }
            "export" => {
                let params::Export { id, format } = read(json)?;
                Self::Export { id, format }
            }
            _ => return Err(unknown()),
        };
        call.check()?;
        Ok(call)
    }

    /// The rules that a schema cannot say: bytes instead of characters, blank texts, control characters.
    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Search { query, .. } => check_query(query),
            Self::Create { title, body } => check_title(title).and_then(|()| check_body(body)),
            Self::Edit { change, .. } => change.check(),
            _ => Ok(()),
        }
    }

    /// Does it, and gives the result as JSON text.
    ///
    /// # Errors
    /// Those of the store, and [`Error::ResultTooLarge`].
    pub(crate) fn run(self, store: &mut Store, now_ms: u64) -> Result<String, Error> {
        let reads =
            matches!(self, Self::List { .. } | Self::Search { .. } | Self::Read { .. } | Self::Export { .. });
        let result = self.result(store, now_ms)?.to_string();
        if reads && result.len() > MAX_RESULT_BYTES {
            return Err(Error::ResultTooLarge { bytes: result.len(), limit: MAX_RESULT_BYTES });
        }
        Ok(result)
    }

    fn result(self, store: &mut Store, now_ms: u64) -> Result<Value, Error> {
        Ok(match self {
            Self::List { after, limit } => {
                let page = store.list(after, limit);
                let row = |(id, header): &(u64, &crate::note::Header)| {
                    json!({"id": id, "revision": header.revision, "title": header.title,
                           "changed_ms": header.changed_ms})
                };
                with_next(json!({"notes": page.notes.iter().map(row).collect::<Vec<_>>()}), page.next)
            }
            Self::Search { query, after, limit } => {
                let page = store.search(&query, after, limit)?;
                let row = |Match { id, title, snippet }: &Match| json!({"id": id, "title": title, "snippet": snippet});
                with_next(json!({"matches": page.matches.iter().map(row).collect::<Vec<_>>()}), page.next)
            }
            Self::Read { id } => store.read(id)?.to_json(id),
            Self::Create { title, body } => saved(store.create(&title, &body, now_ms)?),
            Self::Edit { id, change } => saved(store.edit(id, change, now_ms)?),
            Self::Delete { id, expected_revision } => saved(store.delete(id, expected_revision)?),
            Self::Restore { id, expected_revision } => saved(store.restore(id, expected_revision)?),
            Self::Export { id, format } => export(id, &store.read(id)?, format),
        })
    }
}

fn saved(saved: impl Serialize) -> Value {
    json!(saved)
}

/// `next` is there only if there is more.
fn with_next(mut page: Value, next: Option<u64>) -> Value {
    if let (Value::Object(members), Some(next)) = (&mut page, next) {
        members.insert("next".to_owned(), next.into());
    }
    page
}

/// The message tells where, not what: the parser's own words repeat the value, which may be what was typed.
fn read<P: DeserializeOwned>(json: &str) -> Result<P, Error> {
    serde_json::from_str(json).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        Error::parameter("", format!("the parameters do not fit the declared schema at {place}"))
    })
}
