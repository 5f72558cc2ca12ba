//! Desktop entries: what an application's `.desktop` file says of it (R-021, Desktop Entry Specification 1.5).
//!
//! Bytes become a [`Verdict`] in one bounded pass, nothing is copied that nobody asks for, and no command line ever
//! goes through a shell. Whether an entry's program has a toolkit is for the reader of programs; what is registered
//! is the daemon's word. Start with [`parse`] for one file, and with [`list`] for the folders of a system.

mod app_id;
mod data_dirs;
mod entry;
mod exec;
mod facts;
mod fault;
pub(crate) mod file;
pub(crate) mod folder;
mod group;
mod interpreter;
mod key;
mod line;
mod locale;
mod menu;
mod program;
mod report;
mod sandbox;
mod shell;
mod skip;
mod tree;
mod value;
mod wrapper;

pub use app_id::app_id;
pub use data_dirs::data_dirs;
pub use entry::{Action, DesktopEntry, Ignored, MAX_ACTIONS, Parsed, Question, Rejection, Verdict, parse};
pub use exec::{ExecError, MAX_ARGUMENTS, MAX_COMMAND_BYTES};
pub use facts::{AppFacts, examine};
pub use fault::{Diagnostic, Diagnostics, Fault, MAX_DIAGNOSTICS};
pub use file::{MAX_DESKTOP_FILE_BYTES, StatKey, read};
pub use group::MAX_KEYS;
pub use key::Key;
pub use line::MAX_LINE_BYTES;
pub use locale::Locale;
pub use menu::{is_installed, is_shown_in};
pub use program::{Launch, MAX_WRAPPERS, follow};
pub use report::{
    AppReport, DesktopQuestion, DesktopReport, EntryReport, SkipReport, TreeReport, inspect_desktop,
    inspect_tree,
};
pub use sandbox::Sandbox;
pub use skip::{MAX_SKIPS, Skip, SkipReason, Skips};
pub use tree::{
    Backing, Candidate, Listing, MAX_DEPTH, MAX_DESKTOP_FILES, MAX_DIRECTORIES, MAX_DIRECTORY_NAMES,
    MAX_HELD_FOLDERS, Resolved, Standing, TreeLimits, Winner, list,
};
pub use value::MAX_LIST_ITEMS;
