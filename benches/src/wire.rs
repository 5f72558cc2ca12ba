//! A frame on its way in and out, without a socket.

use pcp_core::{Domain, Envelope, Intent, OperationId};
use pcp_ipc::payloads::ExecuteRequest;
use pcp_ipc::{Payload, Request};
use pcp_stream::{FrameReader, Role, StreamMessageType, encode};

/// A ping and an execute request, encoded and read back.
#[derive(Debug)]
pub struct Wire {
    out: Vec<u8>,
    reader: FrameReader,
}

impl Default for Wire {
    fn default() -> Self {
        Self::new()
    }
}

impl Wire {
    /// Buffers as a connection has them.
    #[must_use]
    pub fn new() -> Self {
        Self { out: Vec::with_capacity(4096), reader: FrameReader::new() }
    }

    /// One ping and one execute request, out and in. Gives the number of bytes on the wire.
    ///
    /// # Panics
    /// When what is read is not what was written: a bench asserts its answer.
    pub fn round(&mut self) -> usize {
        self.out.clear();
        let envelope = Envelope {
            operation_id: OperationId::from_parts(1_780_000_000_000, [7; 10]),
            deadline_ms: None,
            wait: true,
            dry_run: false,
        };
        let intent = Intent {
            domain: Domain::App,
            action: "search",
            target_app: "org.portal.notes",
            parameters: r#"{"text":"milk","limit":20}"#,
        };
        let written = encode(StreamMessageType::Ping, &[], &mut self.out).is_ok()
            && ExecuteRequest::new(&envelope, &intent)
                .is_ok_and(|request| request.write_frame(&mut self.out).is_ok());
        assert!(written, "both frames are written");
        let mut taken = 0;
        let mut requests = 0;
        while taken < self.out.len() {
            taken += self.reader.push(self.out.get(taken..).unwrap_or_default());
            while let Ok(Some(frame)) = self.reader.next_frame() {
                match Request::read(frame, Role::Client) {
                    Ok(Request::Ping) => requests += 1,
                    Ok(Request::Execute(request)) if request.intent() == intent => requests += 1,
                    other => panic!("read back as {other:?}"),
                }
            }
        }
        assert_eq!(requests, 2);
        self.out.len()
    }
}
