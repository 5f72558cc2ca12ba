//! The manifests of root's applications, judged again only when their files are not as they were.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pcp_core::{AppId, CapabilityDescriptor, SignatureStatus};
use pcp_execution::ParameterSchemas;
use pcp_native::{JudgedManifest, load_manifest};
use pcp_trust::{AppRegistration, Keyring};

/// Twice the coarsest tick of a kernel's clock.
const TICK: Duration = Duration::from_millis(20);

/// What a manifest came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The application's version.
    pub version: Arc<str>,
    /// What is known of the signature.
    pub signature: SignatureStatus,
    /// What it declares; nothing unless it is verified.
    pub capabilities: Vec<CapabilityDescriptor>,
    /// Why it declares nothing, where that is so.
    pub problem: Option<Arc<str>>,
}

/// By what a file is known to be the one that was read; `None` for one that is not there.
type FileKey = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

#[derive(Debug)]
struct Known {
    files: [FileKey; 2],
    /// Whether a file was changed so short before it was read that its times would not tell another change.
    is_doubtful: bool,
    judged: Arc<Judged>,
}

/// What was judged, one entry an application of `apps.d`.
#[derive(Debug)]
pub struct Manifests {
    keyring: Keyring,
    keys: PathBuf,
    owner: u32,
    known: HashMap<AppId, Known>,
}

impl Manifests {
    /// Nothing is judged yet. Keys lie in `keys`, and all files belong to `owner`.
    #[must_use]
    pub fn new(keys: &Path, owner: u32) -> Self {
        Self { keyring: Keyring::new(keys, owner), keys: keys.to_owned(), owner, known: HashMap::new() }
    }

    /// What the manifest of `app` comes to, and whether that is news.
    pub fn of(&mut self, app: &AppRegistration) -> (Arc<Judged>, bool) {
        let key = self.keys.join(format!("{}.pub", app.app_id));
        // Asked before the files are read: a change meanwhile is seen by the next pass.
        let files = [file_key(&app.manifest), file_key(&key)];
        let holds = |known: &&Known| known.files == files && !known.is_doubtful;
        if let Some(known) = self.known.get(&app.app_id).filter(holds) {
            return (known.judged.clone(), false);
        }
        let is_doubtful = files.iter().flatten().any(was_just_changed);
        let judged = judge(app, &self.keyring, self.owner);
        // What comes to the same stays the very same, so that nobody takes it for changed.
        let same = self.known.get(&app.app_id).map(|known| &known.judged).filter(|known| ***known == judged);
        let (judged, is_new) = same.map_or_else(|| (Arc::new(judged), true), |same| (same.clone(), false));
        self.known.insert(app.app_id.clone(), Known { files, is_doubtful, judged: judged.clone() });
        (judged, is_new)
    }
}

/// A file written twice within one tick of the kernel's clock keeps its times.
fn was_just_changed(key: &(u64, u64, u64, (i64, i64), (i64, i64))) -> bool {
    let (seconds, nanoseconds) = key.4;
    let changed = Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanoseconds).unwrap_or(0));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(changed) < TICK
}

fn file_key(path: &Path) -> FileKey {
    let facts = std::fs::symlink_metadata(path).ok()?;
    let (changed, marked) = ((facts.mtime(), facts.mtime_nsec()), (facts.ctime(), facts.ctime_nsec()));
    Some((facts.dev(), facts.ino(), facts.size(), changed, marked))
}

fn judge(app: &AppRegistration, keyring: &Keyring, owner: u32) -> Judged {
    let mut judged = load_manifest(app, keyring, owner);
    let signature = judged.report.outcome.signature_status();
    let version = judged.manifest.as_ref().map_or("", |checked| checked.manifest.version.as_str()).into();
    let capabilities = std::mem::take(&mut judged.capabilities);
    let unusable = capabilities.iter().find_map(|capability| {
        [("parameters", &capability.input_schema), ("returns", &capability.output_schema)]
            .into_iter()
            .find_map(|(member, schema)| {
                let error = ParameterSchemas::check_schema(schema).err()?;
                Some(format!("capability {}: {member}: {error}", capability.id))
            })
    });
    let problem = unusable.or_else(|| problem_of(&judged, signature));
    let capabilities = if problem.is_some() { Vec::new() } else { capabilities };
    Judged { version, signature, capabilities, problem: problem.map(Into::into) }
}

fn problem_of(judged: &JudgedManifest, status: SignatureStatus) -> Option<String> {
    let reason = judged.report.reason.unwrap_or("unknown");
    match status {
        SignatureStatus::Verified => None,
        SignatureStatus::Unsigned => {
            Some("its manifest is not signed; sign it with `pcp-cli manifest sign`".into())
        }
        SignatureStatus::Invalid => {
            let why = judged.report.why.as_deref().unwrap_or("it cannot be read");
            Some(format!("its manifest is refused ({reason}): {why}"))
        }
    }
}
