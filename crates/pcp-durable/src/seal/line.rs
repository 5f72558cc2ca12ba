//! The record that ends an epoch in a trail, and how it is read back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::key::EpochKey;
use crate::line::{Chain, Hash, LineWriter, TAIL_BYTES, after_number, members, unhex};

/// Bytes of `,"mac":"…"` with its 64 digits.
const MAC_MEMBER_BYTES: usize = 9 + 64;

/// What a seal begins with behind `synced`.
const BEGIN: &[u8] = b",\"kind\":\"seal\",\"epoch\":";

/// Writes the members of a seal of the trail number `own`, which names where the others stand.
pub(crate) fn write(
    line: &mut LineWriter<'_>,
    key: &EpochKey,
    names: &[String],
    own: usize,
    heads: &[Chain],
    reason: &str,
) {
    line.text("kind", "seal").number("epoch", key.epoch());
    line.object("heads", |line| {
        for (name, head) in
            names.iter().zip(heads).enumerate().filter_map(|(at, it)| (at != own).then_some(it))
        {
            line.object(name, |line| {
                line.number("seq", head.seq).hex("hash", &head.hash);
            });
        }
    });
    if !reason.is_empty() {
        line.text("replaced", reason);
    }
    line.mac(&key.of_trail(&names[own]));
}

/// The epoch that a line ends; `None` for a line that is no seal.
pub(crate) fn epoch_of(line: &[u8]) -> Option<u64> {
    Some(after_number(members(line)?.strip_prefix(BEGIN)?)?.0)
}

/// A seal read back.
#[derive(Debug)]
pub(crate) struct Seal<'a> {
    pub(crate) epoch: u64,
    /// Where the other trails stood, by name.
    pub(crate) heads: Vec<(String, Chain)>,
    /// The epoch is the first one of new keys.
    pub(crate) is_replaced: bool,
    mac: Hash,
    signed: &'a [u8],
}

#[derive(Deserialize)]
struct Members<'a> {
    epoch: u64,
    #[serde(borrow)]
    heads: BTreeMap<String, Head<'a>>,
    replaced: Option<Cow<'a, str>>,
    mac: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Head<'a> {
    seq: u64,
    hash: Cow<'a, str>,
}

impl<'a> Seal<'a> {
    /// Reads a line for which [`epoch_of`] knows an epoch; `None` if it is none of ours all the same.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let members: Members<'_> = serde_json::from_slice(line).ok()?;
        let head = |(name, head): (String, Head<'_>)| {
            Some((name, Chain { seq: head.seq, hash: unhex(head.hash.as_bytes())? }))
        };
        let heads = members.heads.into_iter().map(head).collect::<Option<Vec<_>>>()?;
        let signed = &line[..line.len().checked_sub(TAIL_BYTES + MAC_MEMBER_BYTES)?];
        Some(Self {
            epoch: members.epoch,
            heads,
            is_replaced: members.replaced.is_some(),
            mac: unhex(members.mac.as_bytes())?,
            signed,
        })
    }

    /// Whether the key of its epoch made it for this trail.
    pub(crate) fn is_made_with(&self, key: &EpochKey, trail: &str) -> bool {
        super::mac(&key.of_trail(trail), &[self.signed]) == self.mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_LINE_BYTES;

    #[test]
    fn a_seal_is_read_back_and_every_member_before_its_mac_is_covered() {
        let key = EpochKey::new(12, [4; 32]);
        let names = ["a", "b", "c"].map(str::to_owned);
        let heads = [1, 2, 3].map(|seq| Chain { seq, hash: [7; 32] });
        let mut buffer = Vec::with_capacity(MAX_LINE_BYTES);
        let mut line = LineWriter::begin(&mut buffer, MAX_LINE_BYTES, &heads[1], 1);
        write(&mut line, &key, &names, 1, &heads, "lost");
        line.seal().unwrap();
        let line = &buffer[..buffer.len() - 1];

        let seal = Seal::read(line).unwrap();

        assert_eq!((epoch_of(line), seal.epoch, seal.is_replaced), (Some(12), 12, true));
        assert_eq!(seal.heads, [("a".to_owned(), heads[0]), ("c".to_owned(), heads[2])]);
        assert!(seal.is_made_with(&key, "b") && !seal.is_made_with(&key, "a"));
        assert!(!seal.is_made_with(&key.next(), "b"));
        for at in 0..seal.signed.len() {
            let mut changed = line.to_vec();
            changed[at] ^= 1;
            assert!(Seal::read(&changed).is_none_or(|seal| !seal.is_made_with(&key, "b")), "byte {at}");
        }
        assert_eq!(epoch_of(b"{\"seq\":1,\"prev\":\"\"}"), None);
    }
}
