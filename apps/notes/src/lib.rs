//! Notes: the reference Tier-1 application, and the template for authors of others.
//!
//! Keeps texts in a folder and offers them to the daemon as capabilities. It decides nothing about who may call
//! them: the daemon has asked permission, confirmation and the schema before an invocation arrives. Copy this
//! crate to start your own application; `README.md` walks through it. Read [`NotesServer`] first, then
//! [`Store`].

mod call;
mod error;
mod export;
mod installed;
mod note;
mod options;
mod run;
mod server;
mod store;

pub use call::{ACTIONS, APP_ID, MAX_RESULT_BYTES};
pub use error::Error;
pub use installed::{daemon_uid, read_manifest};
pub use note::{Header, MAX_BODY_BYTES, MAX_FILE_BYTES, MAX_HEADER_BYTES, MAX_TITLE_CHARS, Note};
pub use options::Options;
pub use run::main;
pub use server::NotesServer;
pub use store::{
    Change, Fill, MAX_MATCHES, MAX_NOTES, MAX_PAGE, MAX_QUERY_CHARS, MAX_SEARCH_BYTES, Match, Page,
    SNIPPET_CHARS, Saved, SearchPage, Store,
};
