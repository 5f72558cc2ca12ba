//! A well-formed request of each type, each over a connection of its own: who is answered, and how (T-06).

use std::path::Path;
use std::time::Duration;

use pcp_stream::StreamClient;
use serde::{Deserialize, Serialize};

use crate::exchange::Reply;
use crate::vectors::Vector;

/// Longest wait for an answer; there always is one.
const PATIENCE: Duration = Duration::from_secs(10);

/// What one type got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the type that was sent.
    pub sent: String,
    /// Name of the first answer's type; `none` when there was none, `no connection` when nobody could be asked.
    pub answer: String,
    /// The code of an ErrorResponse, empty for other answers.
    pub code: String,
}

/// Sends the first vector of each type.
#[must_use]
pub fn ask_each(socket: &Path, vectors: &[Vector]) -> Vec<Cell> {
    let mut cells: Vec<Cell> = Vec::new();
    for vector in vectors {
        let sent = vector.message_type.name();
        if cells.iter().all(|cell| cell.sent != sent) {
            let (answer, code) = ask(socket, &vector.frame);
            cells.push(Cell { sent: sent.to_owned(), answer, code });
        }
    }
    cells
}

fn ask(socket: &Path, frame: &[u8]) -> (String, String) {
    let Ok(mut client) = StreamClient::connect_anyone(socket) else {
        return ("no connection".to_owned(), String::new());
    };
    // A listener may refuse before it has read; its answer is there all the same.
    let _ = std::io::Write::write_all(&mut client.stream(), frame);
    match client.receive(PATIENCE) {
        Ok(frame) => {
            let payload = String::from_utf8_lossy(frame.payload).into_owned();
            let reply = Reply { name: frame.message_type.name(), payload };
            (reply.name.to_owned(), reply.code().unwrap_or_default())
        }
        Err(_) => ("none".to_owned(), String::new()),
    }
}
