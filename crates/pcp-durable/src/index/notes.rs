//! What is noted of a segment while it is written or read, so that closing it costs no second reading.

use pcp_core::OperationId;

use super::{Id, Row, Summary};
use crate::line::{Chain, Link, MAX_LINE_BYTES, hash, line_end};

/// Records of operations in a segment of the usual size: their shortest line is some 700 bytes.
const ROWS_EXPECTED: usize = 12_288;

/// Notes about one segment.
#[derive(Debug)]
pub(crate) struct Notes {
    /// Intents and terminals in the order of their lines; at most two for an operation.
    rows: Vec<Row>,
    before: Option<Chain>,
    /// The last line, without its LF.
    last: Vec<u8>,
    last_at: u64,
    bytes: u64,
    latest_ms: u64,
}

impl Notes {
    /// Notes about an empty segment, with all the memory that a segment of the usual size asks for.
    pub(crate) fn new() -> Self {
        Self {
            rows: Vec::with_capacity(ROWS_EXPECTED),
            before: None,
            last: Vec::with_capacity(MAX_LINE_BYTES),
            last_at: 0,
            bytes: 0,
            latest_ms: 0,
        }
    }

    /// Takes whole lines that now stand at the end of the segment.
    pub(crate) fn take(&mut self, lines: &[u8]) {
        let mut rest = lines;
        while let Some(end) = line_end(rest) {
            self.glance_at(&rest[..end]);
            if rest.len() == end + 1 {
                self.remember(&rest[..end]);
            }
            self.bytes += end as u64 + 1;
            rest = &rest[end + 1..];
        }
    }

    /// Takes one line, without its LF.
    pub(crate) fn take_line(&mut self, line: &[u8]) {
        self.glance_at(line);
        self.remember(line);
        self.bytes += line.len() as u64 + 1;
    }

    fn remember(&mut self, line: &[u8]) {
        self.last_at = self.bytes;
        self.last.clear();
        self.last.extend_from_slice(line);
    }

    fn glance_at(&mut self, line: &[u8]) {
        if self.before.is_none() {
            self.before =
                Link::read(line).ok().map(|link| Chain { seq: link.seq.saturating_sub(1), hash: link.prev });
        }
        let Some(Glance { kind, time_ms, id }) = Glance::of(line) else { return };
        self.latest_ms = self.latest_ms.max(time_ms);
        let is_end = kind == b"terminal";
        if !is_end && kind != b"intent" {
            return;
        }
        let place = (u32::try_from(self.bytes), u16::try_from(line.len()));
        if let (Some(id), (Ok(offset), Ok(length))) = (parse(id), place) {
            self.rows.push(Row::new(id, offset, length, is_end));
        }
    }

    /// The summary and the sorted rows of the segment, which is closed now, and empty notes for the next one.
    /// `None` for a segment without lines, or one too long for an index.
    pub(crate) fn close(&mut self) -> Option<(Summary, Vec<Row>)> {
        let before = self.before.take();
        let mut rows = self.rows.clone();
        rows.sort_unstable();
        // The sort is by id, then by place: a later record takes the place of an earlier one.
        rows.dedup_by(|later, kept| {
            let same = later.id == kept.id;
            if same {
                *kept = kept.followed_by(*later);
            }
            same
        });
        let summary = before.and_then(|before| {
            let after = Chain { seq: Link::read(&self.last).ok()?.seq, hash: hash(&self.last) };
            let ids = match (rows.first(), rows.last()) {
                (Some(first), Some(last)) => (first.id, last.id),
                _ => ([0xff; 16], [0; 16]),
            };
            let loose = rows.iter().filter(|row| row.is_loose()).count();
            let (bytes, last_at, latest_ms) = (self.bytes, self.last_at, self.latest_ms);
            u32::try_from(bytes).ok()?;
            let (rows, loose) = (u32::try_from(rows.len()).ok()?, u32::try_from(loose).ok()?);
            Some(Summary { bytes, before, after, last_at, latest_ms, ids, rows, loose })
        });
        self.rows.clear();
        self.last.clear();
        (self.last_at, self.bytes, self.latest_ms) = (0, 0, 0);
        Some((summary?, rows))
    }
}

/// The members that the index is about. Their places are fixed, so nothing is parsed that is not looked for.
struct Glance<'a> {
    kind: &'a [u8],
    time_ms: u64,
    id: &'a [u8],
}

impl<'a> Glance<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        const PREV_BYTES: usize = 9 + 64;
        let (_, rest) = number(line.strip_prefix(b"{\"seq\":")?)?;
        let (_, rest) = number(rest.get(PREV_BYTES..)?.strip_prefix(b"\",\"synced\":")?)?;
        let rest = rest.strip_prefix(b",\"kind\":\"")?;
        let kind = &rest[..rest.iter().position(|byte| *byte == b'"')?];
        let (time_ms, rest) = number(rest[kind.len()..].strip_prefix(b"\",\"time_ms\":")?)?;
        let id = rest.strip_prefix(b",\"operation_id\":\"")?.get(..36)?;
        Some(Self { kind, time_ms, id })
    }
}

fn parse(id: &[u8]) -> Option<Id> {
    OperationId::parse(std::str::from_utf8(id).ok()?).ok().map(|id| *id.as_bytes())
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let value = digits
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (!digits.is_empty()).then_some((value, rest))
}
