//! The adapter of tier 1: what files declare.

use std::path::PathBuf;

use pcp_core::server::BoxFuture;
use pcp_core::{
    Adapter, AdapterHealth, AppId, CapabilityResult, DetectionMethod, DetectionResult, ErrorCode, Invocation,
    PcpError,
};

use crate::cache::DetectionCache;
use crate::desktop::TreeLimits;
use crate::detector::NativeDetector;

/// Tells what the files of a system say of an application.
#[derive(Debug)]
pub struct NativeAdapter {
    detector: NativeDetector,
}

impl NativeAdapter {
    /// Over the data folders `dirs` and the program folders of `path`.
    #[must_use]
    pub fn new(dirs: Vec<PathBuf>, path: Vec<PathBuf>) -> Self {
        Self { detector: NativeDetector::new(dirs, path, TreeLimits::default()) }
    }

    fn found(&self, app_id: &AppId) -> Result<DetectionResult, PcpError> {
        let pass = self.detector.pass(&mut DetectionCache::default());
        let found = pass.apps.iter().find(|found| found.app_id == *app_id);
        found.map(|found| found.app.result(app_id)).ok_or_else(|| {
            PcpError::new(ErrorCode::NotFound, format!("no desktop entry of application {app_id}"))
        })
    }

    /// Works as long as a folder that is there can be looked through.
    fn health(&self) -> AdapterHealth {
        let read = |dir: &PathBuf| match std::fs::read_dir(dir.join("applications")) {
            Ok(_) => Some(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(_) => Some(false),
        };
        let there: Vec<bool> = self.detector.dirs().iter().filter_map(read).collect();
        match (there.iter().all(|read| *read), there.iter().any(|read| *read)) {
            (true, _) => AdapterHealth::Healthy,
            (false, true) => AdapterHealth::Degraded,
            (false, false) => AdapterHealth::Failed,
        }
    }
}

fn unsupported(invocation: &Invocation<'_>) -> PcpError {
    let message = format!("{} was read from files, and files execute nothing", invocation.capability.id);
    PcpError::new(ErrorCode::Unsupported, message)
        .hint("applications with a signed manifest serve their own socket")
}

impl Adapter for NativeAdapter {
    fn detection_method(&self) -> DetectionMethod {
        DetectionMethod::Desktop
    }

    fn detect<'a>(&'a self, app_id: &'a AppId) -> BoxFuture<'a, Result<DetectionResult, PcpError>> {
        Box::pin(async move { self.found(app_id) })
    }

    fn execute<'a>(
        &'a self,
        invocation: Invocation<'a>,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        Box::pin(async move { Err(unsupported(&invocation)) })
    }

    fn execute_with_method<'a>(
        &'a self,
        invocation: Invocation<'a>,
        _method: DetectionMethod,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        self.execute(invocation)
    }

    fn health_check(&self) -> BoxFuture<'_, AdapterHealth> {
        Box::pin(async move { self.health() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_well_as_the_folders_that_are_there() {
        let space = tempfile::tempdir().unwrap();
        let dir = |name: &str| space.path().join(name);
        std::fs::create_dir_all(dir("good/applications")).unwrap();
        std::fs::create_dir_all(dir("bad")).unwrap();
        std::fs::write(dir("bad/applications"), "no folder").unwrap();
        let table: [(&[&str], AdapterHealth); 5] = [
            (&[], AdapterHealth::Healthy),
            (&["absent"], AdapterHealth::Healthy),
            (&["absent", "good"], AdapterHealth::Healthy),
            (&["good", "bad"], AdapterHealth::Degraded),
            (&["bad", "absent"], AdapterHealth::Failed),
        ];
        for (dirs, health) in table {
            let adapter = NativeAdapter::new(dirs.iter().map(|name| dir(name)).collect(), Vec::new());
            assert_eq!(adapter.health(), health, "{dirs:?}");
        }
    }
}
