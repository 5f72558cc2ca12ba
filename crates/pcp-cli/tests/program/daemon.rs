//! A daemon for one test: on its own thread it answers every question with what the test says.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::JoinHandle;

use pcp_stream::{FrameReader, StreamMessageType, encode};

/// What is sent back for one request: frames in order. An empty answer closes the connection.
pub(crate) type Answer = Vec<(StreamMessageType, String)>;

/// A listener with a script.
pub(crate) struct Daemon {
    folder: tempfile::TempDir,
    thread: Option<JoinHandle<Vec<(StreamMessageType, String)>>>,
}

impl Daemon {
    /// Serves one connection by `script`, which sees type and payload of each request.
    pub(crate) fn serve(mut script: impl FnMut(StreamMessageType, &str) -> Answer + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("pcpd.sock")).unwrap();
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut requests = Vec::new();
            let mut frames = FrameReader::new();
            while let Some((message, payload)) = next(&stream, &mut frames) {
                let answer = script(message, &payload);
                requests.push((message, payload));
                if answer.is_empty() {
                    break;
                }
                for (message, payload) in answer {
                    let mut bytes = Vec::new();
                    encode(message, payload.as_bytes(), &mut bytes).unwrap();
                    (&stream).write_all(&bytes).unwrap();
                }
            }
            requests
        });
        Self { folder, thread: Some(thread) }
    }

    /// Answers each question by one frame of one type.
    pub(crate) fn answer(message: StreamMessageType, payload: &'static str) -> Self {
        Self::serve(move |_, _| vec![(message, payload.to_owned())])
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("pcpd.sock")
    }

    /// Runs the program against this daemon and gives its answer, and what the daemon was asked.
    pub(crate) fn run(self, args: &[&str]) -> (i32, String, String, Vec<(StreamMessageType, String)>) {
        self.run_for("5", args)
    }

    /// The same with another `--timeout`.
    pub(crate) fn run_for(
        mut self,
        seconds: &str,
        args: &[&str],
    ) -> (i32, String, String, Vec<(StreamMessageType, String)>) {
        let uid = nix::unistd::getuid().to_string();
        let mut command = super::pcp_cli();
        command.args(args).args(["--expect-uid", &uid, "--timeout", seconds]);
        command.env("PCP_SOCKET", self.socket());
        let (code, out, err) = super::told(&command.output().unwrap());
        let requests = self.thread.take().unwrap().join().unwrap();
        (code, out, err, requests)
    }
}

fn next(mut stream: &UnixStream, frames: &mut FrameReader) -> Option<(StreamMessageType, String)> {
    loop {
        if let Some(frame) = frames.next_frame().unwrap() {
            return Some((frame.message_type, String::from_utf8(frame.payload.to_vec()).unwrap()));
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        if count == 0 {
            return None;
        }
        assert_eq!(frames.push(&bytes[..count]), count);
    }
}
