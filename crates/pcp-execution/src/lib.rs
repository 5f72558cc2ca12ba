//! The order in which an intent becomes a record.
//!
//! One pipeline: classify, resolve, permit, plan, claim, dispatch, verify, record. Each stage consumes the
//! value that the stage before it made, so that no effect can happen without a permission and a synced claim
//! . It does not know sockets (`pcp-daemon` does) or files (`pcp-durable` does).
//! Start with [`ExecutionPipeline::execute`]; for the signed requests of protocol v2, with [`engine::Engine`].

mod authority;
mod config;
pub mod engine;
mod facts;
pub mod json_schema;
mod one_reading;
mod pipeline;
mod redact;
mod result;
mod schema;
mod stages;
mod trace;

pub use authority::{AuthorityKey, Ed25519AuthorityVerifier};
pub use config::PipelineConfig;
pub use pipeline::{ExecutionPipeline, Ports, Request};
pub use redact::MAX_RECORDED_PARAMETERS_BYTES;
pub use result::{ExecutionResult, Plan, Scratch};
pub use schema::{InvalidParameters, MAX_COMPILED_SCHEMAS, MAX_DEPTH, MAX_NODES, ParameterSchemas};
pub use trace::{MAX_TRACES, StageSpan, Trace};
