//! One file for each message: its members as they stand on the wire. `WIRE.md` has the schemas.

mod app_shutdown;
mod cancel_request;
mod capability_result;
mod confirmation;
mod detect;
mod error_response;
mod execute_action;
mod execute_request;
mod execute_response;
mod get_manifest;
mod invoke_capability;
mod manifest_response;
mod push_event;
mod query_state;
mod registry_query;
mod registry_response;
mod state_response;
mod subscribe_events;
mod subscription_ack;
mod validate_params;

pub use app_shutdown::{AppShutdown, AppShutdownAck};
pub use cancel_request::CancelRequest;
pub use capability_result::{InvocationFailure, InvocationResult, OperationFailure, OperationResult};
pub use confirmation::{
    ConfirmationRequest, ConfirmationResponse, Decision, INTENT_HASH_BYTES, MAX_CHOICE_BYTES, MAX_CHOICES,
    MAX_NONCE_BYTES, MAX_PROMPT_ID_BYTES, MAX_PROMPT_TEXT_BYTES, PromptKind,
};
pub use detect::{DetectRequest, DetectResponse};
pub use error_response::ErrorResponse;
pub(crate) use execute_action::signed;
pub use execute_action::{ActionKind, ActionReport, CancelAction, ExecuteAction};
pub use execute_request::{Element, ExecuteRequest, Find, RequestKind, WireIntent};
pub use execute_response::{AckState, Awaiting, ExecuteResponse};
pub use get_manifest::GetManifest;
pub use invoke_capability::{InvokeCapability, PrincipalSummary, WireContext};
pub use manifest_response::ManifestResponse;
pub use push_event::PushEvent;
pub use query_state::QueryState;
pub use registry_query::{RegistryQuery, RegistryRows};
pub use registry_response::{AppRow, CapabilityRow, MAX_PAGE_BYTES, RegistryPage, RegistryResponse};
pub use state_response::StateResponse;
pub use subscribe_events::{DeliveryMode, MAX_TOPIC_BYTES, MAX_TOPICS, SubscribeEvents, UnsubscribeEvents};
pub use subscription_ack::{EventAck, SubscriptionAck};
pub use validate_params::{ValidateParams, ValidateParamsResponse};
