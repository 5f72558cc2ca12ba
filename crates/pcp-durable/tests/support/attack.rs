//! What somebody who may write all files, and may read the present key, does to a log.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub)] // Each test file uses its part of this.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use pcp_core::Trail;
use sha2::{Digest, Sha256};

use super::sealed::Place;

pub type Files = BTreeMap<String, Vec<u8>>;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().to_vec()
}

/// The key of the present epoch as it lies on the disk: its epoch and its bytes.
pub fn present_key(place: &Place) -> (u64, Vec<u8>) {
    let bytes = place.seals.content("key").unwrap();
    (u64::from_le_bytes(bytes[8..16].try_into().unwrap()), bytes[16..48].to_vec())
}

/// Makes the chain of a trail anew, so that every line follows from the one before it. With a key, seals are made
/// with it, whatever their epoch.
pub fn rechain(trail: Trail, lines: &[Vec<u8>], key: Option<&[u8]>) -> Vec<Vec<u8>> {
    let mut prev = [0; 32];
    let mut made = Vec::new();
    for (line, seq) in lines.iter().zip(1_u64..) {
        let text = String::from_utf8(line.clone()).unwrap();
        let members = text.split_once(",\"synced\":").unwrap().1;
        let (synced, rest) = members.split_once(',').unwrap();
        let mut rest = rest[..rest.rfind(",\"crc\":").unwrap()].to_owned();
        let synced = synced.parse::<u64>().unwrap().min(seq - 1);
        let begin = format!("{{\"seq\":{seq},\"prev\":\"{}\",\"synced\":{synced},", hex(&prev));
        if let Some(key) = key.filter(|_| rest.starts_with("\"kind\":\"seal\"")) {
            rest.truncate(rest.rfind(",\"mac\":").unwrap());
            let of_trail = mac(key, &[b"pcp-seal-1 trail ", trail.as_str().as_bytes()]);
            let signed = format!("{begin}{rest}");
            rest.push_str(&format!(",\"mac\":\"{}\"", hex(&mac(&of_trail, &[signed.as_bytes()]))));
        }
        let body = begin + &rest;
        let crc = crc32fast::hash(body.as_bytes());
        let line = format!("{body},\"crc\":\"{crc:08x}\"}}");
        prev = Sha256::digest(line.as_bytes()).into();
        made.push((line + "\n").into_bytes());
    }
    made
}

/// Makes all three trails anew after lines of one of them were changed in their places, with the heads that their seals name, all of it sealed
/// with one key.
pub fn forge(place: &Place, trail: Trail, changed: &[Vec<u8>], key: &[u8]) -> Files {
    let lines_of = |known: &Trail| if *known == trail { changed.to_vec() } else { place.lines(*known) };
    let old: Vec<Vec<Vec<u8>>> = Trail::ALL.iter().map(lines_of).collect();
    let head = |seq: usize, line: &[u8]| {
        format!("\"seq\":{},\"hash\":\"{}\"", seq, hex(&Sha256::digest(&line[..line.len() - 1])))
    };
    let row = |(index, known): (usize, &Trail)| {
        let heads = place.lines(*known).into_iter().enumerate().map(|(at, line)| head(at + 1, &line));
        heads.enumerate().map(|(at, head)| (index, at, head)).collect::<Vec<_>>()
    };
    let originals: Vec<(usize, usize, String)> = Trail::ALL.iter().enumerate().flat_map(row).collect();
    let mut now = old.clone();
    // A head may name a line that only becomes final a round later; there are fewer rounds than epochs.
    for _ in 0..40 {
        let head_now = |row: &(usize, usize, String)| (row.2.clone(), head(row.1 + 1, &now[row.0][row.1]));
        let heads: Vec<(String, String)> = originals.iter().map(head_now).collect();
        let rename = |line: &Vec<u8>| {
            let mut text = String::from_utf8(line.clone()).unwrap();
            if text.contains("\"kind\":\"seal\"") {
                let begin = text.find("\"heads\"").unwrap();
                let mut rest = text.split_off(begin);
                for (old, new) in heads.iter().filter(|(old, new)| old != new) {
                    rest = rest.replace(old.as_str(), new);
                }
                text += &rest;
            }
            text.into_bytes()
        };
        let next: Vec<Vec<Vec<u8>>> = Trail::ALL
            .iter()
            .zip(&old)
            .map(|(trail, lines)| rechain(*trail, &lines.iter().map(rename).collect::<Vec<_>>(), Some(key)))
            .collect();
        if next == now {
            break;
        }
        now = next;
    }
    let name = |trail: &Trail| format!("{trail}.000001.jsonl");
    Trail::ALL.iter().zip(now).map(|(trail, lines)| (name(trail), lines.concat())).collect()
}

/// The trails with other lines in one of them, in one segment.
pub fn with_lines(place: &Place, trail: Trail, lines: &[Vec<u8>]) -> Files {
    let mut files = place.files();
    for name in place.segments(trail) {
        files.remove(&name);
    }
    files.insert(format!("{trail}.000001.jsonl"), lines.concat());
    files
}

/// Makes the anchor anew, from the key as it lies on the disk and the heads of the trails as they are.
pub fn reanchor(place: &Place) {
    let (epoch, key) = present_key(place);
    let mut bytes = b"PCPANCH1".to_vec();
    bytes.extend_from_slice(&epoch.to_le_bytes());
    for trail in Trail::ALL {
        let lines = place.lines(*trail);
        bytes.extend_from_slice(&(lines.len() as u64).to_le_bytes());
        let last = lines.last().map_or([0; 32], |line| Sha256::digest(&line[..line.len() - 1]).into());
        bytes.extend_from_slice(&last);
    }
    let anchor = mac(&mac(&key, &[b"pcp-seal-1 anchor"]), &[&bytes]);
    bytes.extend_from_slice(&anchor);
    place.seals.put("anchor", &bytes);
}
