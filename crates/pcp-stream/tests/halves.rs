//! The asynchronous halves: deadlines, cancellation, stalls.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::time::Duration;

use pcp_stream::{Connection, FRAME_DEADLINE, ProtocolError, StreamMessageType, WRITE_STALL, encode};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

fn pair() -> (Connection, UnixStream) {
    let (here, there) = UnixStream::pair().unwrap();
    (Connection::over(here).unwrap(), there)
}

fn ping() -> Vec<u8> {
    let mut out = Vec::new();
    encode(StreamMessageType::Ping, b"", &mut out).unwrap();
    out
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_begun_has_a_deadline() {
    let (mut here, mut there) = pair();
    there.write_all(&ping()[..3]).await.unwrap();
    let begun = Instant::now();

    let refused = here.reader.next().await;

    assert!(matches!(refused, Err(ProtocolError::FrameDeadline { limit_ms: 5000 })), "{refused:?}");
    assert_eq!(begun.elapsed(), FRAME_DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn single_bytes_do_not_extend_the_deadline_nor_do_dropped_futures() {
    let (mut here, mut there) = pair();
    let begun = Instant::now();
    for byte in ping() {
        there.write_all(&[byte]).await.unwrap();
        if let Ok(outcome) = timeout(Duration::from_secs(1), here.reader.next()).await {
            assert!(matches!(outcome, Err(ProtocolError::FrameDeadline { .. })), "{outcome:?}");
            assert!(begun.elapsed() <= FRAME_DEADLINE + Duration::from_secs(1));
            return;
        }
    }
    panic!("a frame of one byte a second was accepted");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_begun_frame_has_no_deadline() {
    let (mut here, mut there) = pair();
    assert!(timeout(Duration::from_secs(86_400), here.reader.next()).await.is_err());

    there.write_all(&ping()).await.unwrap();

    assert_eq!(here.reader.next().await.unwrap().unwrap().message_type, StreamMessageType::Ping);
}

#[tokio::test(start_paused = true)]
async fn bytes_one_at_a_time_with_pauses_are_the_same_frames() {
    let (mut here, mut there) = pair();
    let bytes = [ping(), ping()].concat();
    let writer = tokio::spawn(async move {
        for byte in bytes {
            there.write_all(&[byte]).await.unwrap();
            sleep(Duration::from_millis(60)).await;
        }
        there
    });
    for _ in 0..2 {
        assert_eq!(here.reader.next().await.unwrap().unwrap().message_type, StreamMessageType::Ping);
    }
    drop(writer.await.unwrap());
    assert!(here.reader.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_peer_that_leaves_inside_a_frame_leaves_no_frame() {
    let (mut here, mut there) = pair();
    there.write_all(&ping()[..12]).await.unwrap();
    drop(there);
    let refused = here.reader.next().await;
    assert!(matches!(refused, Err(ProtocolError::ClosedInsideFrame { received: 12 })), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_stalls_only_its_own_writer_and_not_for_ever() {
    let (mut here, there) = pair();
    let large = vec![b'x'; 1_000_000];
    let begun = Instant::now();

    let stalled = here.writer.send(StreamMessageType::StateResponse, &large).await;

    assert!(matches!(stalled, Err(ProtocolError::WriteStall { limit_ms: 5000 })), "{stalled:?}");
    assert_eq!(begun.elapsed(), WRITE_STALL);
    drop(there);
}

#[tokio::test]
async fn a_write_dropped_halfway_is_finished_by_the_next() {
    let (mut here, there) = pair();
    let mut there = Connection::over(there).unwrap();
    let large = vec![b'x'; 1_000_000];
    let dropped =
        timeout(Duration::from_millis(1), here.writer.send(StreamMessageType::StateResponse, &large)).await;
    assert!(dropped.is_err());
    assert!(here.writer.queued_bytes() > 0);

    let reading = async {
        let first = there.reader.next().await.unwrap().unwrap().payload.len();
        (first, there.reader.next().await.unwrap().unwrap().message_type)
    };
    let (sent, read) = tokio::join!(here.writer.send(StreamMessageType::Pong, b""), reading);

    sent.unwrap();
    assert_eq!(read, (1_000_000, StreamMessageType::Pong));
    assert_eq!(here.writer.queued_bytes(), 0);
}

#[tokio::test]
async fn a_peer_that_has_sent_many_frames_gets_one_a_turn() {
    const FRAMES: usize = 100;
    let (mut here, mut there) = pair();
    there.write_all(&ping().repeat(FRAMES)).await.unwrap();
    let turns = std::cell::Cell::new(0);
    let others = async {
        loop {
            tokio::task::yield_now().await;
            turns.set(turns.get() + 1);
        }
    };
    let reading = async {
        let mut largest_step = 0;
        for _ in 0..FRAMES {
            let before = turns.get();
            here.reader.next().await.unwrap().unwrap();
            largest_step = largest_step.max(turns.get() - before);
        }
        assert!(turns.get() >= FRAMES - 1, "{FRAMES} frames in {} turns of somebody else", turns.get());
        assert!(largest_step <= 2, "{largest_step} turns were waited for one frame");
    };

    tokio::select! {
        () = reading => {}
        () = others => unreachable!(),
    }
}
