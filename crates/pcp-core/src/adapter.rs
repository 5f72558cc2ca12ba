//! What a sense or hand implements (S0 "Core Trait Hierarchy", R-009).

use std::string::String;
use std::vec::Vec;

use crate::capability::{CapabilityDescriptor, CapabilityResult, DetectionMethod};
use crate::error::PcpError;
use crate::id::AppId;
use crate::ports::Invocation;
use crate::server::BoxFuture;
use crate::words::words;

words! {
    /// What a health check finds.
    AdapterHealth: "adapter health" {
        /// Works.
        Healthy = "healthy",
        /// Works, but not fully.
        Degraded = "degraded",
        /// Does not work.
        Failed = "failed",
    }
}

/// What an adapter found out about one application.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectionResult {
    /// The application.
    pub app_id: AppId,
    /// What it offers, as far as this adapter can tell.
    pub capabilities: Vec<CapabilityDescriptor>,
    /// 0.0 to 1.0; results below 0.5 are metadata only.
    pub confidence: f32,
    /// Further facts, in order.
    pub metadata: Vec<(String, String)>,
}

/// One way of finding and reaching applications.
pub trait Adapter {
    /// Which method it is; decides the order in which adapters are asked.
    fn detection_method(&self) -> DetectionMethod;
    /// What it can tell about `app_id`.
    fn detect<'a>(&'a self, app_id: &'a AppId) -> BoxFuture<'a, Result<DetectionResult, PcpError>>;
    /// Does it by the adapter's own best way.
    fn execute<'a>(&'a self, invocation: Invocation<'a>)
    -> BoxFuture<'a, Result<CapabilityResult, PcpError>>;
    /// Does it by the given method.
    fn execute_with_method<'a>(
        &'a self,
        invocation: Invocation<'a>,
        method: DetectionMethod,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>>;
    /// Whether it works now.
    fn health_check(&self) -> BoxFuture<'_, AdapterHealth>;
}
