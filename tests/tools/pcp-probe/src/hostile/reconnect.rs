//! A new connection for every request.

use std::time::Duration;

use pcp_stream::{StreamClient, StreamMessageType};

use super::{AttackReport, REFUSED_PAUSE, Target};
use crate::types::empty_frame;

/// Longest wait for the one answer.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(target: &Target<'_>, _number: u64) -> AttackReport {
    let ping = empty_frame(StreamMessageType::Ping.discriminant());
    let mut report = AttackReport::default();
    while !target.is_over() {
        let Ok(mut client) = StreamClient::connect_anyone(target.socket) else {
            report.unreached += 1;
            std::thread::sleep(REFUSED_PAUSE);
            continue;
        };
        report.connections += 1;
        report.sent += u64::from(std::io::Write::write_all(&mut client.stream(), &ping).is_ok());
        let _ = client.receive(PATIENCE);
    }
    report
}
