//! Well-formed frames of every type, taken from the wire's document or a copy of its vectors.

use std::path::Path;

use pcp_stream::{Frame, StreamMessageType};

use crate::exchange::ProbeError;

/// One frame that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Its type.
    pub message_type: StreamMessageType,
    /// The whole frame.
    pub frame: Vec<u8>,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// Reads every line `NAME HEX...` of a file in which HEX is a frame of the type NAME; other lines are text.
///
/// # Errors
/// [`ProbeError::Input`] when the file cannot be read or a type is missing.
pub fn read_vectors(path: &Path) -> Result<Vec<Vector>, ProbeError> {
    let fault = |why: String| ProbeError::Input(path.to_owned(), why);
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let vectors: Vec<Vector> = text.lines().filter_map(vector).collect();
    match StreamMessageType::ALL.into_iter().find(|kind| vectors.iter().all(|one| one.message_type != *kind))
    {
        None => Ok(vectors),
        Some(missing) => Err(fault(format!("no frame of the type {}", missing.name()))),
    }
}

fn vector(line: &str) -> Option<Vector> {
    let mut words = line.split(' ');
    let (name, frame) = (words.next()?, bytes(words.next()?)?);
    let (decoded, used) = Frame::decode(&frame).ok()??;
    if decoded.message_type.name() != name || used != frame.len() {
        return None;
    }
    let (message_type, payload) = (decoded.message_type, decoded.payload.to_vec());
    Some(Vector { message_type, frame, payload })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_of_the_wire_holds_a_frame_of_every_type() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../crates/pcp-stream/WIRE.md");
        let vectors = read_vectors(&document).unwrap();
        assert!(vectors.len() >= 27, "{}", vectors.len());
        assert!(matches!(read_vectors(Path::new("/dev/null")), Err(ProbeError::Input(..))));
    }
}
