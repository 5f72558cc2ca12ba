//! Properties of the codec: what is written is what is read, and nothing else is.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use pcp_stream::{
    Frame, FrameReader, INITIAL_BUFFER_BYTES, KEPT_BUFFER_BYTES, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES,
    ProtocolError, StreamMessageType, encode, encode_with,
};
use proptest::prelude::*;

fn message_type() -> impl Strategy<Value = StreamMessageType> {
    prop::sample::select(StreamMessageType::ALL.to_vec())
}

fn framed(message_type: StreamMessageType, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(message_type, payload, &mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn a_frame_read_is_the_frame_written(kind in message_type(), payload in prop::collection::vec(any::<u8>(), 0..40_000)) {
        let bytes = framed(kind, &payload);

        let (frame, used) = Frame::decode(&bytes).unwrap().unwrap();

        prop_assert_eq!(frame, Frame { message_type: kind, payload: &payload });
        prop_assert_eq!(used, bytes.len());
    }

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_frames(
        frames in prop::collection::vec((message_type(), prop::collection::vec(any::<u8>(), 0..3000)), 1..6),
        chunk in 1usize..4000,
    ) {
        let mut bytes = Vec::new();
        for (kind, payload) in &frames {
            encode(*kind, payload, &mut bytes).unwrap();
        }
        let mut reader = FrameReader::new();
        let mut read = Vec::new();
        for mut piece in bytes.chunks(chunk) {
            while !piece.is_empty() {
                let taken = reader.push(piece);
                prop_assert!(taken > 0);
                piece = &piece[taken..];
                while let Some(frame) = reader.next_frame().unwrap() {
                    read.push((frame.message_type, frame.payload.to_vec()));
                }
            }
        }
        prop_assert_eq!(read, frames);
        prop_assert!(!reader.has_begun());
    }

    #[test]
    fn a_flipped_bit_outside_the_type_byte_is_never_accepted(
        kind in message_type(),
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = framed(kind, &payload);
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            // Bytes that follow on the stream: a shorter or longer length field must not make sense of them.
            bad.extend_from_slice(&framed(StreamMessageType::Ping, b""));
            match Frame::decode(&bad) {
                Ok(Some((frame, _))) => {
                    prop_assert_eq!(bit / 8, TYPE_BYTE, "bit {} was accepted as {:?}", bit, frame);
                    prop_assert_ne!(frame.message_type, kind);
                    prop_assert_eq!(frame.payload, &payload);
                }
                Ok(None) => prop_assert!(bit < 32, "bit {} waits for more", bit),
                Err(_) => {}
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic_and_never_take_more_than_they_are(
        bytes in prop::collection::vec(any::<u8>(), 0..5000),
        sensible in any::<bool>(),
        len in 0u32..2_000_000,
    ) {
        let mut input = bytes;
        if sensible && input.len() > 16 {
            input[..4].copy_from_slice(&len.to_le_bytes());
            input[4..10].copy_from_slice(&framed(StreamMessageType::Ping, b"")[4..10]);
        }
        let mut reader = FrameReader::new();
        let mut rest = &input[..];
        while !rest.is_empty() {
            let taken = reader.push(rest);
            rest = &rest[taken..];
            match reader.next_frame() {
                Ok(_) | Err(ProtocolError::UnknownType { .. }) => {}
                Err(_) => break,
            }
            prop_assert!(reader.capacity_bytes() <= INITIAL_BUFFER_BYTES.max(2 * input.len()));
        }
    }
}

/// Position of the type byte: after four bytes of length, five of magic and one of version.
const TYPE_BYTE: usize = 10;

#[test]
fn a_payload_at_the_limit_passes_and_one_byte_more_does_not() {
    let mut out = vec![7];
    encode(StreamMessageType::StateResponse, &vec![b'x'; MAX_PAYLOAD_BYTES], &mut out).unwrap();
    let (frame, used) = Frame::decode(&out[1..]).unwrap().unwrap();
    assert_eq!((frame.payload.len(), used), (MAX_PAYLOAD_BYTES, out.len() - 1));

    let mut out = vec![7];
    let refused = encode(StreamMessageType::StateResponse, &vec![b'x'; MAX_PAYLOAD_BYTES + 1], &mut out);
    assert!(matches!(refused, Err(ProtocolError::FrameTooLarge { limit: MAX_FRAME_BYTES, .. })));
    assert_eq!(out, [7], "a refused frame leaves nothing behind");
}

#[test]
fn the_largest_length_field_is_read_and_the_next_one_refused_on_the_number_alone() {
    let at_limit = u32::try_from(MAX_FRAME_BYTES).unwrap();
    assert!(Frame::decode(&at_limit.to_le_bytes()).unwrap().is_none());
    let over_limit = (at_limit + 1).to_le_bytes();
    let refused = Frame::decode(&over_limit);
    assert!(matches!(refused, Err(ProtocolError::FrameTooLarge { len: 1_048_577, .. })));
}

#[test]
fn a_writer_that_fails_leaves_nothing_behind() {
    let mut out = Vec::new();
    let failed: Result<(), ProtocolError> = encode_with(StreamMessageType::Ping, &mut out, |out| {
        out.extend_from_slice(b"half");
        Err(ProtocolError::Closed)
    });
    assert!(failed.is_err());
    assert!(out.is_empty());
}

#[test]
fn an_unknown_type_is_passed_and_the_stream_goes_on() {
    let mut bytes = framed(StreamMessageType::Ping, b"");
    bytes[TYPE_BYTE] = 27;
    bytes.extend_from_slice(&framed(StreamMessageType::Ping, b""));
    let mut reader = FrameReader::new();
    reader.push(&bytes);

    let error = reader.next_frame().unwrap_err();
    assert!(matches!(error, ProtocolError::UnknownType { discriminant: 27 }));
    assert!(!error.ends_stream());
    assert!(reader.next_frame().unwrap().is_some());
}

#[test]
fn an_error_that_ends_the_stream_stays_where_it_is() {
    let mut bytes = framed(StreamMessageType::Pong, b"x");
    *bytes.last_mut().unwrap() ^= 1;
    let mut reader = FrameReader::new();
    reader.push(&bytes);
    for _ in 0..3 {
        let error = reader.next_frame().unwrap_err();
        assert!(matches!(error, ProtocolError::ChecksumMismatch { .. }));
        assert!(error.ends_stream());
    }
}

#[test]
fn a_wrong_header_is_refused_before_its_payload_arrives() {
    let bytes = framed(StreamMessageType::Ping, &[1; 5000]);
    let mut bad_magic = bytes[..25].to_vec();
    bad_magic[4] ^= 1;
    assert!(matches!(Frame::decode(&bad_magic), Err(ProtocolError::BadMagic { .. })));
    assert!(Frame::decode(&bytes[..25]).unwrap().is_none());
}

#[test]
fn a_large_buffer_is_given_back_after_its_frame() {
    let bytes = framed(StreamMessageType::StateResponse, &vec![1; MAX_PAYLOAD_BYTES]);
    let mut reader = FrameReader::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let taken = reader.push(rest);
        rest = &rest[taken..];
        if !rest.is_empty() {
            assert!(reader.next_frame().unwrap().is_none());
            assert!(reader.capacity_bytes() <= INITIAL_BUFFER_BYTES.max(2 * (bytes.len() - rest.len())));
        }
    }
    assert_eq!(reader.next_frame().unwrap().unwrap().payload.len(), MAX_PAYLOAD_BYTES);
    assert!(reader.capacity_bytes() <= MAX_FRAME_BYTES + 4);

    reader.push(&framed(StreamMessageType::Ping, b""));

    assert!(reader.next_frame().unwrap().is_some());
    assert!(reader.capacity_bytes() <= KEPT_BUFFER_BYTES);
}
