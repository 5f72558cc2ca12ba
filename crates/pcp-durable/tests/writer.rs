//! Group commit, limits, full disks and fences.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use pcp_durable::disk::{Fault, FaultyDisk};
use pcp_durable::{Error, Limits, MAX_LINE_BYTES, MAX_WAITING, Sync, Ticket, TrailId, Writer, verify_trail};

const FILE: &str = "t.000001.jsonl";

fn open(disk: &FaultyDisk, limits: Limits) -> (Writer, TrailId) {
    let (writer, _) = Writer::open(Arc::new(disk.clone()), &["t"], limits, &mut |_, _| Ok(())).unwrap();
    let trail = writer.trail("t").unwrap();
    (writer, trail)
}

/// Lazy records stay in the buffer until something else moves.
fn patient() -> Limits {
    Limits { lazy_delay: Duration::from_secs(3600), ..Limits::default() }
}

fn append(writer: &Writer, trail: TrailId, sync: Sync, text: &str) -> Result<Ticket, Error> {
    writer.append(trail, sync, |line| {
        line.text("t", text);
    })
}

#[test]
fn many_threads_share_few_syncs_and_every_record_has_its_place() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let start = std::sync::Barrier::new(32);

    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..50 {
                    let ticket = append(&writer, trail, Sync::Now, "x").unwrap();
                    writer.wait(&ticket).unwrap();
                }
            });
        }
    });

    assert_eq!(writer.status(trail).durable, 1600);
    drop(writer);
    let report = verify_trail(&disk, "t");
    assert!(report.is_whole());
    assert_eq!(report.lines, 1600);
}

#[test]
fn what_gathers_is_written_and_synced_at_once() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, patient());
    let _ = append(&writer, trail, Sync::Lazy, "x").unwrap();
    let before = disk.calls();
    for _ in 0..100 {
        let _ = append(&writer, trail, Sync::Lazy, "x").unwrap();
    }
    let ticket = append(&writer, trail, Sync::Now, "x").unwrap();
    writer.wait(&ticket).unwrap();

    // One write and one sync for 102 records.
    assert_eq!(disk.calls() - before, 2);
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_future_is_woken_once_its_record_is_durable() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    for _ in 0..1000 {
        let ticket = append(&writer, trail, Sync::Now, "x").unwrap();
        let mut waiting = pin!(writer.durable(ticket));
        let woken = count.0.load(Ordering::SeqCst);
        if waiting.as_mut().poll(&mut cx).is_pending() {
            writer.wait(&ticket).unwrap();
            while count.0.load(Ordering::SeqCst) == woken {
                std::thread::yield_now();
            }
            assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Ready(Ok(()))));
        }
    }
}

#[test]
fn waiting_for_a_lazy_record_makes_it_durable() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, patient());
    let ticket = append(&writer, trail, Sync::Lazy, "x").unwrap();

    writer.wait(&ticket).unwrap();

    assert_eq!(writer.status(trail).durable, 1);
    assert_eq!(disk.after_power_loss(0).content(FILE), disk.content(FILE));
}

#[test]
fn a_lazy_record_is_written_before_long_by_itself() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let _ = append(&writer, trail, Sync::Lazy, "x").unwrap();

    while disk.content(FILE).unwrap().is_empty() {
        std::thread::yield_now();
    }

    assert_eq!(writer.status(trail).durable, 0);
}

#[test]
fn a_record_longer_than_a_line_is_refused_and_leaves_no_trace() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let frame = {
        let ticket = append(&writer, trail, Sync::Now, "").unwrap();
        writer.wait(&ticket).unwrap();
        disk.content(FILE).unwrap().len()
    };
    let room = MAX_LINE_BYTES - frame;

    assert!(append(&writer, trail, Sync::Now, &"x".repeat(room)).is_ok());
    let refused = append(&writer, trail, Sync::Now, &"x".repeat(room + 1)).unwrap_err();
    assert!(matches!(refused, Error::LineTooLong { limit: MAX_LINE_BYTES }), "{refused}");
    let claim = append(&writer, trail, Sync::Claim, &"x".repeat(room)).unwrap_err();
    assert!(matches!(claim, Error::LineTooLong { .. }), "a claim must leave room for its end");
    writer.close().unwrap();
    let report = verify_trail(&disk, "t");
    assert!(report.is_whole());
    assert_eq!(report.lines, 2);
}

#[test]
fn a_description_that_panics_leaves_no_trace() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = writer.append(trail, Sync::Now, |line| {
            line.text("t", "half");
            std::panic::resume_unwind(Box::new(()));
        });
    }));
    assert!(panicked.is_err());

    let ticket = append(&writer, trail, Sync::Now, "x").unwrap();
    writer.wait(&ticket).unwrap();

    assert_eq!(ticket.seq, 1);
    assert!(verify_trail(&disk, "t").is_whole());
}

/// A disk whose syncs wait for the test.
#[derive(Debug, Clone)]
struct Gated {
    disk: FaultyDisk,
    gate: Arc<std::sync::Mutex<()>>,
}

#[derive(Debug)]
struct GatedFile(Box<dyn pcp_durable::disk::DiskFile>, Arc<std::sync::Mutex<()>>);

impl pcp_durable::Disk for Gated {
    fn list(&self) -> std::io::Result<Vec<String>> {
        self.disk.list()
    }
    fn open(&self, name: &str) -> std::io::Result<Box<dyn pcp_durable::disk::DiskFile>> {
        Ok(Box::new(GatedFile(self.disk.open(name)?, self.gate.clone())))
    }
    fn create(&self, name: &str) -> std::io::Result<Box<dyn pcp_durable::disk::DiskFile>> {
        Ok(Box::new(GatedFile(self.disk.create(name)?, self.gate.clone())))
    }
    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.disk.remove(name)
    }
    fn sync_dir(&self) -> std::io::Result<()> {
        self.disk.sync_dir()
    }
    fn remaining_bytes(&self) -> std::io::Result<u64> {
        self.disk.remaining_bytes()
    }
}

impl pcp_durable::disk::DiskFile for GatedFile {
    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read_at(offset, into)
    }
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.append(bytes)
    }
    fn sync_data(&mut self) -> std::io::Result<()> {
        let _open = self.1.lock().unwrap();
        self.0.sync_data()
    }
    fn truncate(&mut self, size: u64) -> std::io::Result<()> {
        self.0.truncate(size)
    }
    fn reserve(&mut self, offset: u64, bytes: u64) -> std::io::Result<()> {
        self.0.reserve(offset, bytes)
    }
}

fn gated() -> (Gated, Writer, TrailId) {
    let disk = Gated { disk: FaultyDisk::new(), gate: Arc::default() };
    let (writer, _) =
        Writer::open(Arc::new(disk.clone()), &["t"], Limits::default(), &mut |_, _| Ok(())).unwrap();
    let trail = writer.trail("t").unwrap();
    (disk, writer, trail)
}

#[test]
fn only_so_many_records_wait_for_a_slow_disk_and_ends_go_before_claims() {
    let (disk, writer, trail) = gated();
    let closed = disk.gate.lock().unwrap();
    let count = |sync| {
        let mut count = 0;
        loop {
            match append(&writer, trail, sync, "x") {
                Ok(_) => count += 1,
                Err(Error::TooManyWaiting { .. }) => return count,
                Err(error) => panic!("{error}"),
            }
        }
    };

    assert_eq!(count(Sync::Claim), MAX_WAITING / 4 * 3);
    assert_eq!(count(Sync::Now), MAX_WAITING / 4);

    drop(closed);
    writer.flush().unwrap();
    assert!(append(&writer, trail, Sync::Claim, "x").is_ok());
}

#[test]
fn only_so_many_bytes_wait_for_a_slow_disk() {
    let (disk, writer, trail) = gated();
    let closed = disk.gate.lock().unwrap();
    let _ = append(&writer, trail, Sync::Now, "x").unwrap();
    let text = "x".repeat(1000);
    let refused = loop {
        match append(&writer, trail, Sync::Lazy, &text) {
            Ok(_) => {}
            Err(error) => break error,
        }
    };

    assert!(matches!(&refused, Error::Backlog { waiting, limit, .. } if waiting <= limit), "{refused}");
    assert!(append(&writer, trail, Sync::Now, &text).is_ok(), "urgent records have room of their own");

    drop(closed);
    writer.close().unwrap();
    assert!(verify_trail(&disk.disk, "t").is_whole());
}

#[test]
fn a_failed_sync_fences_the_store_for_good() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let safe = append(&writer, trail, Sync::Now, "safe").unwrap();
    writer.wait(&safe).unwrap();
    disk.fail(2, Fault::Io);

    let lost = append(&writer, trail, Sync::Now, "lost").unwrap();
    let refused = writer.wait(&lost).unwrap_err();

    assert!(matches!(&refused, Error::Fenced { action: "sync", .. }), "{refused}");
    assert!(writer.wait(&safe).is_ok(), "what was durable stays so");
    for _ in 0..3 {
        let calls = disk.calls();
        assert!(matches!(append(&writer, trail, Sync::Lazy, "x"), Err(Error::Fenced { .. })));
        assert!(matches!(writer.wait(&lost), Err(Error::Fenced { .. })));
        assert_eq!(disk.calls(), calls, "a fenced store touched the disk");
    }
    assert!(writer.close().is_err());
    let (again, trail) = open(&disk.after_kill(), Limits::default());
    assert_eq!(again.status(trail).durable, 1);
}

#[test]
fn a_full_disk_refuses_claims_keeps_room_for_ends_and_recovers_by_itself() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, Limits::default());
    let ticket = append(&writer, trail, Sync::Claim, "x").unwrap();
    writer.wait(&ticket).unwrap();
    disk.set_capacity(Some(disk.used()));
    // Fill what is left beyond the reserve.
    while !writer.status(trail).full {
        let ticket = append(&writer, trail, Sync::Now, &"x".repeat(1000)).unwrap();
        writer.wait(&ticket).unwrap();
    }

    let refused = append(&writer, trail, Sync::Claim, "x").unwrap_err();
    assert!(matches!(refused, Error::Full { .. }) && refused.is_unavailable(), "{refused}");
    for n in 0..200 {
        let refusal = append(&writer, trail, Sync::Kept, &"x".repeat(300));
        assert!(refusal.is_ok(), "refusal {n} found no room");
        writer.wait(&refusal.unwrap()).unwrap();
    }
    let end = append(&writer, trail, Sync::Now, &"x".repeat(1000)).unwrap();
    writer.wait(&end).unwrap();

    disk.set_capacity(None);
    let recovered = std::iter::repeat_with(|| append(&writer, trail, Sync::Claim, "x")).find_map(Result::ok);
    writer.wait(&recovered.unwrap()).unwrap();
    assert!(!writer.status(trail).full);
    assert_eq!(writer.status(trail).dropped, 0);
    writer.close().unwrap();
    assert!(verify_trail(&disk, "t").is_whole());
}

#[test]
fn records_that_a_full_disk_swallowed_are_refused_and_their_numbers_used_again() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, patient());
    let kept = append(&writer, trail, Sync::Now, "kept").unwrap();
    writer.wait(&kept).unwrap();
    // The write itself finds no space, whatever was reserved.
    disk.fail(1, Fault::NoSpace);
    let swallowed = append(&writer, trail, Sync::Now, "swallowed").unwrap();
    let refused = writer.wait(&swallowed).unwrap_err();
    assert!(matches!(refused, Error::Full { .. }), "{refused}");

    let next =
        std::iter::repeat_with(|| append(&writer, trail, Sync::Now, "next")).find_map(Result::ok).unwrap();
    writer.wait(&next).unwrap();

    assert_eq!((swallowed.seq, next.seq), (2, 2));
    assert!(matches!(writer.wait(&swallowed), Err(Error::Full { .. })), "it must not pass for the other one");
    assert_eq!(writer.status(trail).dropped, 1);
    writer.close().unwrap();
    assert!(verify_trail(&disk, "t").is_whole());
}

#[test]
fn closing_writes_and_syncs_what_nobody_waited_for() {
    let disk = FaultyDisk::new();
    let (writer, trail) = open(&disk, patient());
    for _ in 0..10 {
        let _ = append(&writer, trail, Sync::Lazy, "x").unwrap();
    }

    writer.close().unwrap();

    let left = disk.after_power_loss(3);
    assert_eq!(left.content(FILE), disk.content(FILE));
    assert_eq!(verify_trail(&left, "t").lines, 10);
}
