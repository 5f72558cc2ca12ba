//! As many pings as the socket takes, their answers read and forgotten.

use std::time::Instant;

use pcp_stream::StreamMessageType;

use super::garbage::send;
use super::{AttackReport, Target};
use crate::types::empty_frame;

/// Requests a write: a few kilobytes, as a program that forgot to wait sends them.
const AT_ONCE: usize = 256;

pub(super) fn run(target: &Target<'_>, _number: u64) -> AttackReport {
    let frames = empty_frame(StreamMessageType::Ping.discriminant()).repeat(AT_ONCE);
    let mut report = AttackReport::default();
    while !target.is_over() {
        let Some(stream) = target.connect(&mut report) else { continue };
        let since = Instant::now();
        while !target.is_over() {
            if !send(&stream, &frames) {
                report.note_closed(since.elapsed());
                break;
            }
            report.sent += AT_ONCE as u64;
        }
    }
    report
}
