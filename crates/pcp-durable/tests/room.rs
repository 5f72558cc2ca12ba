//! A producer that waits for room is slowed down by a slow disk and never refused by it.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use pcp_durable::disk::{Fault, FaultyDisk};
use pcp_durable::{Limits, Sync, TrailId, Writer, verify_trail};

/// Records of the test: many times what a buffer holds.
const RECORDS: u64 = 4_000;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn open(disk: &FaultyDisk) -> (Writer, TrailId) {
    let (writer, _) =
        Writer::open(Arc::new(disk.clone()), &["t"], Limits::default(), &mut |_, _| Ok(())).unwrap();
    let trail = writer.trail("t").unwrap();
    (writer, trail)
}

#[test]
fn whoever_waits_for_room_is_never_refused_and_every_record_is_kept() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk);
    let text = "x".repeat(1000);

    for number in 0..RECORDS {
        let sync = if number % 2 == 0 { Sync::Lazy } else { Sync::Kept };
        block_on(poll_fn(|cx| writer.poll_room(trail, sync, cx)));
        let _ = writer
            .append(trail, sync, |line| {
                line.text("t", &text);
            })
            .unwrap();
    }

    writer.close().unwrap();
    let report = verify_trail(&disk, "t");
    assert!(report.is_whole());
    assert_eq!(report.lines, RECORDS);
}

#[test]
fn nobody_waits_for_room_in_a_store_that_takes_nothing_any_more() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk);
    disk.fail(2, Fault::Io);
    let ticket = writer.append(trail, Sync::Now, |_| {}).unwrap();
    assert!(writer.wait(&ticket).is_err());

    block_on(poll_fn(|cx| writer.poll_room(trail, Sync::Lazy, cx)));

    assert!(writer.append(trail, Sync::Lazy, |_| {}).is_err());
}
