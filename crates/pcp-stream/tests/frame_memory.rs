//! Half-sent large frames of many connections together hold a bounded amount of memory (TH-21).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use pcp_stream::{Connection, KEPT_BUFFER_BYTES, LARGE_FRAMES_BYTES, MAX_FRAME_BYTES, ProtocolError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// As many half frames as would hold twice the limit.
const HALVES: usize = 2 * LARGE_FRAMES_BYTES / MAX_FRAME_BYTES;

#[test]
fn half_frames_beyond_the_limit_are_refused_and_room_comes_back_when_they_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        // Given peers that each send all but the last byte of a large frame,
        let (told, mut refusals) = mpsc::channel(HALVES);
        let mut peers = Vec::new();
        for _ in 0..HALVES {
            let (near, far) = UnixStream::pair().unwrap();
            let mut connection = Connection::over(near).unwrap();
            let told = told.clone();
            tokio::task::spawn_local(async move {
                let ended = connection.reader.next().await.map(drop);
                told.send(ended).await.unwrap();
            });
            peers.push(far);
        }
        let mut sent = 0;
        for peer in &mut peers {
            let mut frame = u32::try_from(MAX_FRAME_BYTES).unwrap().to_le_bytes().to_vec();
            // A right header, so that the rest is waited for: ping, with a payload that fills the frame.
            frame.extend_from_slice(&[0x80, 0xa0, 0x8d, 0x82, 0x05, 1, 0]);
            frame.extend_from_slice(&[0xf5, 0xff, 0x3f, 0]);
            frame.resize(MAX_FRAME_BYTES, 0);
            sent += usize::from(peer.write_all(&frame).await.is_ok());
        }
        // then some are refused by the limit and none of the others is,
        let refused = HALVES - sent;
        assert!(refused > 0, "{sent} of {HALVES} were taken whole");
        let least = LARGE_FRAMES_BYTES / (MAX_FRAME_BYTES - KEPT_BUFFER_BYTES) - 1;
        assert!(sent >= least, "{sent} of {HALVES} were taken whole, {least} have room");
        for _ in 0..refused {
            let ended = refusals.recv().await.unwrap();
            assert!(matches!(ended, Err(ProtocolError::FrameMemory { .. })), "{ended:?}");
        }
        // and when the peers go, there is room again.
        drop(peers);
        for _ in 0..sent {
            assert!(matches!(refusals.recv().await.unwrap(), Err(ProtocolError::ClosedInsideFrame { .. })));
        }
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut connection = Connection::over(near).unwrap();
        let mut frame = Vec::new();
        let payload = vec![b'x'; MAX_FRAME_BYTES / 2];
        pcp_stream::encode(pcp_stream::StreamMessageType::Ping, &payload, &mut frame).unwrap();
        let sender = tokio::task::spawn_local(async move { far.write_all(&frame).await.map(|()| far) });
        assert_eq!(connection.reader.next().await.unwrap().unwrap().payload.len(), payload.len());
        sender.await.unwrap().unwrap();
    });
}
