//! One frame: bytes to [`Frame`] and back, every size checked before memory is taken.
//!
//! [`Frame::decode`] is the single rule; [`FrameReader`] only keeps the bytes that have arrived until the
//! rule says that they are a frame. The buffer grows with what arrives, not with what was announced.

use std::ops::Range;

use crate::error::ProtocolError;
use crate::header::{MAX_HEADER_BYTES, MIN_HEADER_BYTES, StreamHeader};
use crate::message_type::StreamMessageType;

/// Bytes of the length field, which counts the bytes after itself.
const LENGTH_BYTES: usize = 4;

/// Largest frame, in bytes after the length field: a registry page or a file chunk fits, a hostile
/// peer costs at most this much per connection.
pub const MAX_FRAME_BYTES: usize = 1024 * 1024;

/// Largest payload, in bytes, that fits a frame whatever its header takes.
pub const MAX_PAYLOAD_BYTES: usize = MAX_FRAME_BYTES - MAX_HEADER_BYTES;

/// First size of a connection's buffer, in bytes: most messages fit, a thousand idle peers cost 4 MiB.
pub const INITIAL_BUFFER_BYTES: usize = 4 * 1024;

/// Size up to which an empty buffer is kept, in bytes; a larger one is given back after the frame that
/// needed it, so that one large reply does not stay charged to a connection.
pub const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// Room left for length field and header while a payload is written: the most frequent size, so that the
/// payload rarely has to move when the header turns out shorter or longer.
const USUAL_HEAD_BYTES: usize = 18;

/// One whole and intact frame. The payload stays where it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What the payload is.
    pub message_type: StreamMessageType,
    /// The bytes between this header and the next frame; their checksum was right.
    pub payload: &'a [u8],
}

/// Where a frame lies in the bytes that hold it.
struct Located {
    discriminant: u32,
    payload: Range<usize>,
    total: usize,
}

/// A frame that has arrived, without a borrow of the buffer it lies in: what lets a caller wait in a loop and
/// look at the frame afterwards.
#[derive(Debug)]
pub struct Arrived {
    message_type: StreamMessageType,
    payload: Range<usize>,
}

impl Arrived {
    /// What the frame carries.
    #[must_use]
    pub const fn message_type(&self) -> StreamMessageType {
        self.message_type
    }
}

impl<'a> Frame<'a> {
    /// Reads the frame at the front of `bytes` and says how many bytes it took.
    ///
    /// `Ok(None)` means that the bytes so far are right but do not hold a whole frame. A frame of an
    /// unknown type is reported as an error only when it is whole and intact otherwise.
    pub fn decode(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let Some(found) = locate(bytes)? else { return Ok(None) };
        let message_type = known(found.discriminant)?;
        let payload = bytes.get(found.payload).unwrap_or_default();
        Ok(Some((Self { message_type, payload }, found.total)))
    }
}

fn known(discriminant: u32) -> Result<StreamMessageType, ProtocolError> {
    StreamMessageType::from_discriminant(discriminant).ok_or(ProtocolError::UnknownType { discriminant })
}

/// The rule: length, header, consistency, checksum, in this order and as early as the bytes allow.
fn locate(bytes: &[u8]) -> Result<Option<Located>, ProtocolError> {
    let Some(&length) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let announced = u32::from_le_bytes(length);
    let len = usize::try_from(announced).unwrap_or(usize::MAX);
    if len > MAX_FRAME_BYTES {
        return Err(ProtocolError::FrameTooLarge { len: u64::from(announced), limit: MAX_FRAME_BYTES });
    }
    if len < MIN_HEADER_BYTES {
        return Err(ProtocolError::FrameTooShort { len: announced, least: MIN_HEADER_BYTES });
    }
    let arrived = &bytes[LENGTH_BYTES..];
    let inside = &arrived[..arrived.len().min(len)];
    let Some((header, header_len)) = StreamHeader::read(inside)? else {
        // A header that is still open although it has all the room there is can never be closed.
        if inside.len() >= len.min(MAX_HEADER_BYTES) {
            return Err(ProtocolError::HeaderCut { len });
        }
        return Ok(None);
    };
    let room = len - header_len;
    if usize::try_from(header.payload_len) != Ok(room) {
        return Err(ProtocolError::LengthMismatch { payload_len: header.payload_len, room });
    }
    if inside.len() < len {
        return Ok(None);
    }
    let computed = crc32fast::hash(&inside[header_len..]);
    if computed != header.checksum {
        return Err(ProtocolError::ChecksumMismatch { stated: header.checksum, computed });
    }
    let total = LENGTH_BYTES + len;
    Ok(Some(Located { discriminant: header.discriminant, payload: LENGTH_BYTES + header_len..total, total }))
}

/// Appends a frame with this payload to `out`.
///
/// On an error `out` is as it was before.
pub fn encode(
    message_type: StreamMessageType,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    encode_with(message_type, out, |out| {
        out.extend_from_slice(payload);
        Ok(())
    })
}

/// Appends a frame whose payload `write` appends: the payload is built where it is sent from.
///
/// `write` may only append. On an error of its own or a payload over [`MAX_PAYLOAD_BYTES`] `out` is as it
/// was before.
pub fn encode_with<E: From<ProtocolError>>(
    message_type: StreamMessageType,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let begin = out.len();
    out.resize(begin + USUAL_HEAD_BYTES, 0);
    let written = write(out);
    let payload_at = begin + USUAL_HEAD_BYTES;
    let len = out.len().saturating_sub(payload_at);
    let result = written.and_then(|()| Ok(put_head(message_type, out, begin, len)?));
    if result.is_err() {
        out.truncate(begin);
    }
    result
}

/// Writes length field and header before the payload that stands at `begin + USUAL_HEAD_BYTES`.
fn put_head(
    message_type: StreamMessageType,
    out: &mut Vec<u8>,
    begin: usize,
    len: usize,
) -> Result<(), ProtocolError> {
    let too_large = ProtocolError::FrameTooLarge { len: len as u64, limit: MAX_FRAME_BYTES };
    if len > MAX_PAYLOAD_BYTES {
        return Err(too_large);
    }
    let payload_at = begin + USUAL_HEAD_BYTES;
    let Ok(payload_len) = u32::try_from(len) else { return Err(too_large) };
    let checksum = crc32fast::hash(&out[payload_at..]);
    let header = StreamHeader { discriminant: message_type.discriminant(), payload_len, checksum };
    let mut bytes = [0; MAX_HEADER_BYTES];
    let header_len = header.write(&mut bytes);
    let Ok(total) = u32::try_from(header_len + len) else { return Err(too_large) };

    let wanted_at = begin + LENGTH_BYTES + header_len;
    if wanted_at < payload_at {
        out.copy_within(payload_at.., wanted_at);
        out.truncate(wanted_at + len);
    } else if wanted_at > payload_at {
        out.resize(wanted_at + len, 0);
        out.copy_within(payload_at..payload_at + len, wanted_at);
    }
    out[begin..begin + LENGTH_BYTES].copy_from_slice(&total.to_le_bytes());
    out[begin + LENGTH_BYTES..wanted_at].copy_from_slice(&bytes[..header_len]);
    Ok(())
}

/// The bytes of one direction of a connection that are not yet a frame, in one reusable buffer.
///
/// In a steady state nothing is allocated: the buffer is kept between frames up to
/// [`KEPT_BUFFER_BYTES`] and never grows beyond one frame.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl FrameReader {
    /// A reader that has seen nothing and holds no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), start: 0, end: 0 }
    }

    /// The next whole frame among the bytes that have arrived, or `None` until there is one.
    ///
    /// After [`ProtocolError::UnknownType`] the frame is passed and reading can go on; every other error
    /// stays where it is and comes back on each call.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, ProtocolError> {
        Ok(self.advance()?.map(|arrived| self.frame(&arrived)))
    }

    /// Passes the next frame without borrowing from the buffer, so that a caller can loop over it.
    pub(crate) fn advance(&mut self) -> Result<Option<Arrived>, ProtocolError> {
        let begin = self.start;
        let Some(found) = locate(&self.buffer[begin..self.end])? else { return Ok(None) };
        self.start += found.total;
        let message_type = known(found.discriminant)?;
        Ok(Some(Arrived { message_type, payload: begin + found.payload.start..begin + found.payload.end }))
    }

    /// The frame that arrived last; its bytes stay in place until [`Self::space`] is asked for.
    pub(crate) fn frame(&self, arrived: &Arrived) -> Frame<'_> {
        Frame {
            message_type: arrived.message_type,
            payload: self.buffer.get(arrived.payload.clone()).unwrap_or_default(),
        }
    }

    /// Whether some but not all bytes of a frame have arrived; call it after [`Self::next_frame`] gave `None`.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.end > self.start
    }

    /// Bytes that have arrived and are not part of a frame yet.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.end - self.start
    }

    /// Bytes of memory the buffer holds.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes bytes that came from elsewhere than a socket and says how many of them it had room for.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let space = self.space();
        let taken = space.len().min(bytes.len());
        space[..taken].copy_from_slice(&bytes[..taken]);
        self.filled(taken);
        taken
    }

    /// Room to receive into. Never empty as long as [`Self::next_frame`] was asked until it gave `None`.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEPT_BUFFER_BYTES {
                self.buffer.truncate(INITIAL_BUFFER_BYTES);
                self.buffer.shrink_to_fit();
            }
        }
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let wanted =
                    (2 * self.buffer.len()).clamp(INITIAL_BUFFER_BYTES, LENGTH_BYTES + MAX_FRAME_BYTES);
                self.buffer.reserve_exact(wanted - self.buffer.len());
                self.buffer.resize(wanted, 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// Says that the first `count` bytes of [`Self::space`] have been received.
    pub(crate) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.buffer.len());
    }
}
