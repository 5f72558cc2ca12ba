//! Everything that can go wrong between root's files and a verdict, with the next step in the text.

use std::io;
use std::path::PathBuf;

/// What was attempted and why it did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A public key of another length; it is never cut or padded to fit.
    #[error("public key has {length} bytes, not 32: store the raw key, without hex, newline or header")]
    KeyLength {
        /// Bytes there were.
        length: usize,
    },
    /// 32 bytes that are no point of the curve, or not its canonical encoding.
    #[error("public key is no canonical point of the curve: make a new key pair")]
    KeyInvalid,
    /// A key of small order, under which anybody can sign anything.
    #[error("public key is of small order and would accept forged signatures: make a new key pair")]
    KeyWeak,
    /// A signature that is not the one base64 spelling of 64 bytes.
    #[error("signature of {length} characters is not the padded base64 of 64 bytes")]
    SignatureForm {
        /// Characters there were.
        length: usize,
    },
    /// The strict rule did not hold.
    #[error("signature does not belong to this key and these bytes")]
    BadSignature,
    /// The kernel's random source could not be read.
    #[error("cannot read {path} for a new key: {source}")]
    Randomness {
        /// The source.
        path: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A document larger than any honest one.
    #[error("document of {size} bytes exceeds the {limit}-byte limit")]
    DocumentTooLarge {
        /// Bytes there were.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// Not exactly one JSON text.
    #[error("malformed document: {detail}")]
    Malformed {
        /// What the reader met.
        detail: String,
    },
    /// A name that occurs twice in one object.
    #[error("the name {key:?} occurs twice in one object: readers would disagree, keep one")]
    DuplicateKey {
        /// The name, shortened.
        key: String,
    },
    /// Objects and arrays nested too deeply.
    #[error("document is nested more than {limit} levels deep")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A number that not every reader holds exactly.
    #[error("number {number} is beyond 9007199254740991, the largest that every reader holds exactly")]
    NumberOutOfRange {
        /// The number as read.
        number: String,
    },
    /// A file that could not be opened or read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The path, or a directory on the way, is a symbolic link.
    #[error("{path} passes through a symbolic link: name the real path")]
    SymbolicLink {
        /// The path as given.
        path: PathBuf,
    },
    /// A directory, device, pipe or socket where a file belongs.
    #[error("{path} is not a regular file")]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// A file larger than its kind may be.
    #[error("{path} exceeds the {limit}-byte limit")]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// A file that belongs to somebody whose word does not count here.
    #[error("{path} belongs to uid {owner}, not {wanted}: chown it")]
    WrongOwner {
        /// The file.
        path: PathBuf,
        /// Who owns it.
        owner: u32,
        /// Who must.
        wanted: u32,
    },
    /// A file that others than its owner may change.
    #[error("{path} has mode {mode:04o} and can be written by others: chmod go-w it")]
    WritableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A trusted key file whose content is no usable key.
    #[error("cannot use trusted key {path}: {source}")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with the key.
        #[source]
        source: Box<Error>,
    },
    /// A principal's file that says nothing certain. The principal it was about does not exist (fail closed).
    #[error("{path}:{line}: {detail}")]
    PrincipalFile {
        /// The file.
        path: PathBuf,
        /// Line the trouble is on, from 1.
        line: usize,
        /// What is wrong, with the next step.
        detail: String,
        /// The uids on its lines that look like `uid = N`: what it was about, as far as one can tell.
        uids_named: Vec<u32>,
    },
    /// Two files that claim the same uid. Neither counts.
    #[error("uid {uid} is claimed by both {first} and {second}: remove it from one")]
    DuplicateUid {
        /// The uid.
        uid: u32,
        /// The file read first.
        first: PathBuf,
        /// The file read second.
        second: PathBuf,
    },
    /// An authority key whose issuer, name or generation is no identifier.
    #[error("{field} of authority key {at} is not 1 to 256 characters of A-Z a-z 0-9 - _ :")]
    AuthorityIdentifier {
        /// Which key, from 0.
        at: usize,
        /// Which of its three names.
        field: &'static str,
    },
    /// An authority key that cannot verify anything.
    #[error("cannot use authority key {at}: {source}")]
    AuthorityKey {
        /// Which key, from 0.
        at: usize,
        /// What is wrong with it.
        #[source]
        source: Box<Error>,
    },
    /// Two authority keys of one issuer with one name, whether or not they are the same key.
    #[error("authority key {at} has the issuer and key id of key {first}: one of them must go")]
    AuthorityDuplicate {
        /// Which key, from 0.
        at: usize,
        /// The one before it.
        first: usize,
    },
    /// More authority keys than a keyring holds.
    #[error("{keys} authority keys exceed the limit of {limit}: remove those that are out of use")]
    AuthorityTooMany {
        /// How many.
        keys: usize,
        /// The limit.
        limit: usize,
    },
    /// More files in a directory than will be read.
    #[error("{path} holds more than {limit} files: remove what is not in use")]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
}
