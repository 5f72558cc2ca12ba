//! The smallest adapter: one application, one capability, everything that the trait asks for (R-009).
//!
//! It finds `org.example.clock` and answers what time it is. Run it with
//! `cargo run -p pcp-core --example adapter`.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use pcp_core::{
    Adapter, AdapterHealth, AppId, BoxFuture, CapabilityDescriptor, CapabilityId, CapabilityResult,
    DetectionMethod, DetectionResult, Domain, ErrorCode, Invocation, InvocationContext, Modality,
    OperationId, PcpError, SignatureStatus, StabilityLevel, Tier, TrustLevel,
};

/// Knows one application by heart.
struct ClockAdapter;

fn time_capability() -> Result<CapabilityDescriptor, PcpError> {
    let fault = |error: pcp_core::IdError| PcpError::new(ErrorCode::InvalidRequest, error.to_string());
    let id = CapabilityId::parse("app.org.example.clock.get_time").map_err(fault)?;
    Ok(CapabilityDescriptor {
        app_id: AppId::parse(id.app()).map_err(fault)?,
        domain: id.domain(),
        id,
        name: "Time".into(),
        description: "Says what time it is".into(),
        category: "read".into(),
        input_schema: r#"{"type":"object","additionalProperties":false}"#.into(),
        output_schema: r#"{"type":"object","properties":{"time":{"type":"string"}}}"#.into(),
        method: DetectionMethod::Atspi2,
        stability: StabilityLevel::Experimental,
        version: "1".into(),
        side_effects: false,
        confirmation_required: false,
        minimum_trust: TrustLevel::OBSERVE,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Unsigned,
        clear_parameters: Box::default(),
    })
}

impl Adapter for ClockAdapter {
    fn detection_method(&self) -> DetectionMethod {
        DetectionMethod::Atspi2
    }

    fn detect<'a>(&'a self, app_id: &'a AppId) -> BoxFuture<'a, Result<DetectionResult, PcpError>> {
        Box::pin(async move {
            let capability = time_capability()?;
            let found = capability.app_id == *app_id;
            Ok(DetectionResult {
                app_id: app_id.clone(),
                capabilities: if found { vec![capability] } else { Vec::new() },
                confidence: if found { 0.9 } else { 0.0 },
                metadata: vec![("toolkit".into(), "none".into())],
            })
        })
    }

    fn execute<'a>(
        &'a self,
        invocation: Invocation<'a>,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        self.execute_with_method(invocation, self.detection_method())
    }

    fn execute_with_method<'a>(
        &'a self,
        invocation: Invocation<'a>,
        method: DetectionMethod,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        Box::pin(async move {
            if method != self.detection_method() {
                return Err(PcpError::new(
                    ErrorCode::Unsupported,
                    format!("the clock is not reached by {method}"),
                ));
            }
            match invocation.capability.id.action() {
                "get_time" => Ok(CapabilityResult::ok(r#"{"time":"12:00"}"#)),
                other => {
                    Ok(CapabilityResult::refused(ErrorCode::Unsupported, format!("no action {other:?}")))
                }
            }
        })
    }

    fn health_check(&self) -> BoxFuture<'_, AdapterHealth> {
        Box::pin(async { AdapterHealth::Healthy })
    }
}

/// Drives a future that never waits; an adapter inside the daemon has a runtime of its own.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn main() -> Result<(), PcpError> {
    let capability = time_capability()?;
    let found = now(ClockAdapter.detect(&capability.app_id)).transpose()?;
    let context = InvocationContext {
        operation_id: OperationId::from_parts(0, [0; 10]),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Remote,
        tier: Tier::Two,
        budget_ms: Domain::App.budget_ms(),
    };
    let invocation = Invocation { capability: &capability, context: &context, parameters: "{}" };
    let result = now(ClockAdapter.execute(invocation)).transpose()?;
    println!("{:?}\n{:?}", found.map(|found| found.confidence), result.and_then(|result| result.data_json));
    assert_eq!(now(ClockAdapter.health_check()), Some(AdapterHealth::Healthy));
    Ok(())
}
