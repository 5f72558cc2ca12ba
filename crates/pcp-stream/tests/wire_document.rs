//! `WIRE.md` and the codec agree, and a reader that shares no code with it agrees with both.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pcp_stream::{Frame, StreamMessageType, encode};

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("WIRE.md")
}

fn python_reader() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/python/frames.py")
}

struct Vector {
    name: String,
    bytes: Vec<u8>,
    payload: String,
}

fn vectors() -> Vec<Vector> {
    let text = std::fs::read_to_string(document()).unwrap();
    let block = text.split("```golden\n").nth(1).unwrap().split("\n```").next().unwrap();
    block
        .lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let name = parts.next().unwrap().to_owned();
            let hex = parts.next().unwrap();
            let bytes = (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect();
            Vector { name, bytes, payload: parts.next().unwrap_or_default().to_owned() }
        })
        .collect()
}

#[test]
fn every_golden_vector_decodes_and_encodes_to_the_same_bytes() {
    assert!(vectors().len() >= 20);
    for vector in vectors() {
        let (frame, used) = Frame::decode(&vector.bytes).unwrap().unwrap();
        assert_eq!(used, vector.bytes.len(), "{}", vector.name);
        assert_eq!(frame.message_type.name(), vector.name);
        assert_eq!(frame.payload, vector.payload.as_bytes(), "{}", vector.name);

        let mut again = Vec::new();
        encode(frame.message_type, frame.payload, &mut again).unwrap();
        assert_eq!(again, vector.bytes, "{}", vector.name);
    }
}

#[test]
fn the_document_lists_the_27_types_of_the_code() {
    let text = std::fs::read_to_string(document()).unwrap();
    let rows: Vec<(u32, String, String)> = text
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let number = cells.get(1)?.parse().ok()?;
            Some((number, (*cells.get(2)?).to_owned(), cells.get(3)?.trim_matches('`').to_owned()))
        })
        .collect();
    let code: Vec<_> = StreamMessageType::ALL
        .into_iter()
        .map(|message_type| {
            (message_type.discriminant(), message_type.title().to_owned(), message_type.name().to_owned())
        })
        .collect();
    assert_eq!(rows, code);
}

fn python(arguments: &[&str], input: &[u8]) -> (bool, String) {
    let mut child = Command::new("python3")
        .arg(python_reader())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs; install it (ci/setup does)");
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_independent_reader_agrees_with_the_document() {
    let (agreed, said) = python(&["vectors", document().to_str().unwrap()], b"");
    assert!(agreed, "{said}");
}

#[test]
fn the_independent_reader_agrees_with_the_codec_on_every_type_and_size() {
    let mut stream = Vec::new();
    let mut count = 0;
    for message_type in StreamMessageType::ALL {
        for len in [0, 1, 127, 128, 16_383, 16_384, 70_000] {
            let payload: Vec<u8> = (0..len).map(|at: u32| at.to_le_bytes()[0] ^ 0x5a).collect();
            encode(message_type, &payload, &mut stream).unwrap();
            count += 1;
        }
    }
    let (agreed, said) = python(&["check"], &stream);
    assert!(agreed, "{said}");
    assert_eq!(said.trim(), format!("{count} frames agree"));
}
