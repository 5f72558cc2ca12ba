//! Stage 6: what was proven, by the tier that acted (C4, R-167).

use pcp_core::{Effect, ErrorCode, PcpError, Stage, StateSource, Tier};
use sha2::{Digest, Sha256};

use super::Refusal;
use super::dispatch::Dispatched;
use crate::schema::ParameterSchemas;

/// Done, and this much is known of it.
#[derive(Debug)]
pub(crate) struct Verified {
    pub(super) effect: Option<Effect>,
    pub(super) state_source: StateSource,
    pub(super) method: &'static str,
}

/// Tier 1 proves by its typed result: it says that it succeeded, and the result is what the manifest declares.
/// A tier that cannot prove is never called verified.
pub(crate) fn verify(
    dispatched: Dispatched,
    results: &ParameterSchemas,
    data: &str,
) -> Result<Verified, Refusal> {
    let Dispatched { capability, is_read, state_source } = dispatched;
    if is_read {
        return Ok(Verified { effect: None, state_source, method: "none" });
    }
    if capability.method.tier() != Tier::One {
        return Ok(Verified { effect: Some(Effect::ExecutedUnverified), state_source, method: "none" });
    }
    let json = if data.is_empty() { "null" } else { data };
    let sha256 = Sha256::digest(json.as_bytes()).into();
    match results.fits(&capability.id, &capability.output_schema, json, &sha256) {
        Ok(()) => Ok(Verified { effect: Some(Effect::Verified), state_source, method: "result" }),
        Err(unfit) => {
            let message = format!(
                "{} reported success with a result that its manifest does not declare ({unfit}); it may have happened",
                capability.id
            );
            let stage = Stage::Verify;
            let error = PcpError::new(ErrorCode::VerificationFailed, message).at(stage);
            Err(Refusal { error, stage, may_have_happened: true, timed_out: false })
        }
    }
}
