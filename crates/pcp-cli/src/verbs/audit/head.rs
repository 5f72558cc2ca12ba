//! `audit head`: where the trails stand, to be kept elsewhere.

use std::path::Path;

use pcp_core::Trail;
use pcp_durable::{Pin, RealDisk, head};

use crate::digits::hex;
use crate::error::Error;

/// What every line begins with, so that the file says what it is.
const WORD: &str = "pcp-audit-head";

/// A line for each trail: the word, its name, the number of its last record, the hash of that line.
pub(super) fn text(dir: &Path) -> Result<String, Error> {
    let disk = RealDisk::open_read_only(dir)?;
    let mut text = String::new();
    for trail in Trail::ALL {
        let chain = head(&disk, *trail)?;
        text.push_str(&format!("{WORD} {trail} {} {}\n", chain.seq, hex(&chain.hash)));
    }
    Ok(text)
}

/// Reads such lines; `None` unless each one is whole and there is at least one.
pub(super) fn parse(text: &str) -> Option<Vec<Pin>> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (word, trail, seq, hash) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let hash = (word == WORD && words.next().is_none()).then(|| unhex(hash))??;
        Some(Pin { trail: trail.parse().ok()?, seq: seq.parse().ok()?, hash })
    };
    let pins: Option<Vec<Pin>> = text.lines().filter(|text| !text.trim().is_empty()).map(line).collect();
    pins.filter(|pins| !pins.is_empty())
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_back_and_half_a_file_of_them_is_none() {
        let hash = "ab".repeat(32);
        let whole = format!("{WORD} application 12 {hash}\n{WORD} system 0 {hash}\n");

        let pins = parse(&whole).unwrap();

        assert_eq!(
            (pins.len(), pins[0].trail, pins[0].seq, pins[0].hash),
            (2, Trail::Application, 12, [0xab; 32])
        );
        for wrong in
            ["", "\n", &whole[..whole.len() - 3], &whole.replace("12", "x"), &whole.replace("system", "s")]
        {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
