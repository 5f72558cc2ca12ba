//! The frame cases of `tests/stories/data/frames`, judged at the level of the codec.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::Path;

use pcp_stream::{Frame, FrameReader, MAX_FRAME_BYTES, ProtocolError};
use serde_json::Value;

/// What came of one input: the types of the frames in it and the error that ended it.
fn read_all(bytes: &[u8], chunk: usize) -> (Vec<u32>, Option<ProtocolError>, FrameReader) {
    let mut reader = FrameReader::new();
    let mut types = Vec::new();
    for mut piece in bytes.chunks(chunk) {
        while !piece.is_empty() {
            let taken = reader.push(piece);
            piece = &piece[taken..];
            loop {
                match reader.next_frame() {
                    Ok(Some(frame)) => types.push(frame.message_type.discriminant()),
                    Ok(None) => break,
                    Err(error) => return (types, Some(error), reader),
                }
            }
        }
    }
    (types, None, reader)
}

#[test]
fn every_frame_case_has_its_outcome_however_the_bytes_arrive() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data/frames");
    let expected: Value = serde_json::from_slice(&std::fs::read(dir.join("expected.json")).unwrap()).unwrap();
    let cases = expected["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 15);
    for case in cases {
        let bytes = std::fs::read(dir.join(case["file"].as_str().unwrap())).unwrap();
        for chunk in [1, 7, bytes.len()] {
            let (types, error, reader) = read_all(&bytes, chunk);

            let name = case["case"].as_str().unwrap();
            assert_eq!(Some(types.len() as u64), case["frames"].as_u64(), "{name}: frames that were read");
            let kind = match &error {
                None if reader.has_begun() => "eof",
                None => "accept",
                Some(ProtocolError::ChecksumMismatch { .. }) => "checksum-mismatch",
                Some(ProtocolError::UnknownType { discriminant: 200 }) => "error-reply",
                Some(_) => "reject",
            };
            let wanted = match (name, case["outcome"].as_str().unwrap()) {
                // Framing is right in both; what is inside is for `pcp-ipc` to refuse.
                ("F02" | "F15", _) => "accept",
                (_, wanted) => wanted,
            };
            assert_eq!(kind, wanted, "{name} in pieces of {chunk}: {error:?}");
            let limit = case["max_alloc_bytes"].as_u64().unwrap_or(MAX_FRAME_BYTES as u64);
            assert!(
                (reader.capacity_bytes() as u64) < limit,
                "{name} took {} bytes",
                reader.capacity_bytes()
            );
        }
    }
}

#[test]
fn a_refusal_names_what_was_wrong() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data/frames/files");
    let table = [
        ("bad-magic", "magic number 0x50435031 is not 0x50435000; the peer speaks another protocol"),
        ("bad-version", "protocol version 2 is not supported; this side speaks version 1"),
        ("length-bomb", "frame of 4294967295 bytes exceeds the 1048576-byte limit"),
        ("length-zero", "frame of 0 bytes cannot hold a header of 9 bytes"),
        ("payload-len-too-large", "header promises 4000 payload bytes but the frame holds 3"),
        ("trailing-bytes", "header promises 0 payload bytes but the frame holds 3"),
        ("varint-too-long", "header field payload_len is not a 32-bit varint in its shortest form"),
        ("unknown-type", "message type 200 is not one of 0 to 26"),
    ];
    for (file, text) in table {
        let bytes = std::fs::read(dir.join(file).with_extension("bin")).unwrap();
        assert_eq!(Frame::decode(&bytes).unwrap_err().to_string(), text, "{file}");
    }
}
