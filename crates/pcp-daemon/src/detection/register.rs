//! `register_detection()`: verify the signature, then register the application with its capabilities.

use pcp_core::{AppEntry, CapabilityRegistry, DetectionMethod, SignatureStatus};
use pcp_execution::ParameterSchemas;
use pcp_native::{JudgedManifest, load_manifest};
use pcp_registry::InMemoryRegistry;
use pcp_trust::{AppRegistration, Keyring, PrincipalTable};
use tracing::{info, warn};

/// What became of one application of `apps.d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredApp {
    /// Its id.
    pub id: String,
    /// How many capabilities were registered.
    pub capabilities: usize,
    /// Why there are none, where that is so.
    pub problem: Option<String>,
}

/// Registers every application of the table. One that is broken is registered without capabilities and with
/// its problem, so that people see it; the others are not touched by it.
pub fn register_apps(
    table: &PrincipalTable,
    keyring: &Keyring,
    owner: u32,
    registry: &InMemoryRegistry,
) -> Vec<RegisteredApp> {
    table.apps().map(|app| register_app(app, keyring, owner, registry)).collect()
}

fn register_app(
    app: &AppRegistration,
    keyring: &Keyring,
    owner: u32,
    registry: &InMemoryRegistry,
) -> RegisteredApp {
    let mut judged = load_manifest(app, keyring, owner);
    let status = judged.report.outcome.signature_status();
    let version = judged.manifest.as_ref().map_or("", |checked| checked.manifest.version.as_str()).to_owned();
    let capabilities = std::mem::take(&mut judged.capabilities);
    let unusable = capabilities.iter().find_map(|capability| {
        [("parameters", &capability.input_schema), ("returns", &capability.output_schema)]
            .into_iter()
            .find_map(|(member, schema)| {
                let error = ParameterSchemas::check_schema(schema).err()?;
                Some(format!("capability {}: {member}: {error}", capability.id))
            })
    });
    let problem = unusable.or_else(|| problem_of(&judged, status));
    let capabilities = if problem.is_some() { Vec::new() } else { capabilities };
    let count = capabilities.len();
    let mut entry = AppEntry {
        id: app.app_id.clone(),
        version: version.into(),
        method: DetectionMethod::Desktop,
        signature: status,
        problem: problem.as_deref().map(Into::into),
        capabilities: capabilities.iter().map(|capability| capability.id.clone()).collect(),
    };
    let id = app.app_id.to_string();
    match registry.register_app(entry.clone(), capabilities) {
        Ok(()) => {
            match &problem {
                None => info!(app = %id, capabilities = count, "application registered"),
                Some(problem) => warn!(app = %id, %problem, "application offers nothing"),
            }
            RegisteredApp { id, capabilities: count, problem }
        }
        Err(error) => {
            warn!(app = %id, %error, "application refused by the registry");
            let problem = Some(error.to_string());
            entry.problem = problem.as_deref().map(Into::into);
            entry.capabilities = [].into();
            // A full or contested registry refuses the capabilities; the bare entry shows the problem.
            let _ = registry.register_app(entry, Vec::new());
            RegisteredApp { id, capabilities: 0, problem }
        }
    }
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
