//! A Tier-1 application's socket, with the daemon's client and with hostile peers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pcp_core::server::InvalidParams;
use pcp_core::{
    AppId, BoxFuture, CapabilityId, CapabilityResult, Domain, ErrorCode, InvocationContext, Modality,
    OperationId, PcpServer, StateSource, Tier, TrustLevel,
};
use pcp_ipc::{AppClient, MAX_APP_CONNECTIONS, PcpServerRunner};
use pcp_stream::{Connection, StreamMessageType};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

const MANIFEST: &str = r#"{"app_id":"org.x.notes", "version":"1"}"#;

struct Notes {
    id: AppId,
    invoked: AtomicU32,
    hang: Notify,
}

impl PcpServer for Notes {
    fn app_id(&self) -> &AppId {
        &self.id
    }

    fn manifest(&self) -> &str {
        MANIFEST
    }

    fn invoke<'a>(
        &'a self,
        capability: &'a CapabilityId,
        context: &'a InvocationContext,
        params: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(async move {
            self.invoked.fetch_add(1, Ordering::SeqCst);
            match capability.action() {
                "echo" => CapabilityResult::ok(params),
                "who" => CapabilityResult::ok(format!(r#"{{"uid":{}}}"#, context.uid)),
                "nonsense" => CapabilityResult::ok("{not json"),
                "large" => CapabilityResult::ok(format!("\"{}\"", "x".repeat(1 << 20))),
                "hang" => {
                    self.hang.notified().await;
                    CapabilityResult::ok("null")
                }
                _ => CapabilityResult::refused(ErrorCode::NotFound, "no such capability"),
            }
        })
    }

    fn validate_params<'a>(
        &'a self,
        _: &'a CapabilityId,
        params: &'a str,
    ) -> BoxFuture<'a, Result<(), InvalidParams>> {
        Box::pin(async move {
            if params == "{}" {
                return Ok(());
            }
            Err(InvalidParams { pointer: "/title".to_owned(), message: "too short".to_owned() })
        })
    }
}

struct Running {
    app: Arc<Notes>,
    path: PathBuf,
    serving: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

fn serve_for(daemon_uid: u32) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let app = Arc::new(Notes {
        id: AppId::parse("org.x.notes").unwrap(),
        invoked: AtomicU32::new(0),
        hang: Notify::new(),
    });
    let runner = PcpServerRunner::bind(dir.path(), app.clone(), daemon_uid).unwrap();
    let path = runner.path().to_owned();
    Running { app, path, serving: tokio::spawn(runner.run()), _dir: dir }
}

fn capability(action: &str) -> CapabilityId {
    CapabilityId::parse(&format!("app.org.x.notes.{action}")).unwrap()
}

fn context() -> InvocationContext {
    InvocationContext {
        operation_id: OperationId::from_parts(1_700_000_000_000, [1; 10]),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Remote,
        tier: Tier::One,
        budget_ms: 5000,
    }
}

fn client(path: &Path) -> AppClient {
    AppClient::new(path, own_uid())
}

/// Sends one raw frame and gives the name and payload of the reply, or `None` when the peer closed.
async fn exchange(
    connection: &mut Connection,
    kind: StreamMessageType,
    payload: &str,
) -> Option<(String, String)> {
    connection.writer.send(kind, payload.as_bytes()).await.unwrap();
    let frame = connection.reader.next().await.ok()??;
    Some((frame.message_type.name().to_owned(), String::from_utf8(frame.payload.to_vec()).unwrap()))
}

#[tokio::test]
async fn each_method_of_an_application_is_reached_by_its_message() {
    let running = serve_for(own_uid());
    let mut client = client(&running.path);
    let mut data = b"left over".to_vec();

    let reply = client.invoke(&capability("echo"), &context(), r#"{"a":[1, 2]}"#, &mut data).await.unwrap();
    assert!(reply.success && reply.failure.is_none());
    assert_eq!((reply.state_source, data.as_slice()), (StateSource::Rust, br#"{"a":[1, 2]}"#.as_slice()));

    client.invoke(&capability("who"), &context(), "{}", &mut data).await.unwrap();
    assert_eq!(data, br#"{"uid":1000}"#);

    let reply = client.invoke(&capability("what"), &context(), "{}", &mut data).await.unwrap();
    let failure = reply.failure.unwrap();
    assert!(!reply.success && failure.no_effect && data.is_empty());
    assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::NotFound, "no such capability"));

    assert_eq!(client.validate(&capability("echo"), "{}").await.unwrap(), Ok(()));
    let invalid = client.validate(&capability("echo"), r#"{"title":""}"#).await.unwrap().unwrap_err();
    assert_eq!((invalid.pointer.as_str(), invalid.message.as_str()), ("/title", "too short"));

    client.manifest(&mut data).await.unwrap();
    assert_eq!(data, MANIFEST.as_bytes());

    let refused = client.query_state("mood", "{}", &mut data).await.unwrap_err();
    assert_eq!((refused.error.code, refused.no_effect), (ErrorCode::NotFound, true));

    client.shut_down("the story ends").await.unwrap();
    running.serving.await.unwrap();
    assert!(!running.path.exists(), "the socket goes with the runner");
}

#[tokio::test]
async fn a_result_that_is_no_json_or_too_large_is_a_failure_whose_effect_is_not_denied() {
    let running = serve_for(own_uid());
    let mut client = client(&running.path);
    let mut data = Vec::new();
    for action in ["nonsense", "large"] {
        let reply = client.invoke(&capability(action), &context(), "{}", &mut data).await.unwrap();
        let failure = reply.failure.unwrap();
        assert_eq!((failure.code, failure.no_effect), (ErrorCode::SerializationError, false), "{action}");
    }
    assert!(client.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap().success);
}

#[tokio::test]
async fn a_peer_that_is_not_the_daemon_is_refused_before_it_says_anything() {
    let running = serve_for(own_uid() + 1);
    let mut stranger = Connection::connect(&running.path, own_uid()).await.unwrap();

    let frame = stranger.reader.next().await.unwrap().unwrap();

    let payload = String::from_utf8(frame.payload.to_vec()).unwrap();
    assert!(payload.contains(r#""code":"permission_denied""#), "{payload}");
    assert!(stranger.reader.next().await.unwrap().is_none(), "and closed");
    assert_eq!(running.app.invoked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_socket_that_another_user_serves_gets_no_request() {
    let running = serve_for(own_uid());
    let mut squatted = AppClient::new(&running.path, own_uid() + 1);
    let refused = squatted.invoke(&capability("echo"), &context(), "{}", &mut Vec::new()).await.unwrap_err();
    assert_eq!((refused.error.code, refused.no_effect), (ErrorCode::SquattedSocket, true));
    assert_eq!(running.app.invoked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn all_27_types_get_an_answer_and_six_are_served() {
    let running = serve_for(own_uid());
    let mut connection = Connection::connect(&running.path, own_uid()).await.unwrap();
    for kind in StreamMessageType::ALL {
        let (name, payload) = exchange(&mut connection, kind, "").await.unwrap();
        assert_eq!(name, "error_response", "{kind:?}");
        let served = [9, 14, 16, 18, 20, 22].contains(&kind.discriminant());
        let code = if served { "invalid_request" } else { "unsupported_message" };
        assert!(payload.contains(&format!(r#""code":"{code}""#)), "{kind:?}: {payload}");
    }
    assert_eq!(running.app.invoked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_malformed_frame_closes_only_its_own_connection() {
    let running = serve_for(own_uid());
    let mut honest = client(&running.path);
    let mut data = Vec::new();
    honest.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap();
    let stream = tokio::net::UnixStream::connect(&running.path).await.unwrap();
    stream.writable().await.unwrap();
    stream.try_write(&[0xff; 14]).unwrap();
    let mut hostile = Connection::over(stream).unwrap();

    let frame = hostile.reader.next().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(frame.payload).contains(r#""code":"protocol_error""#));
    assert!(hostile.reader.next().await.unwrap().is_none(), "the hostile connection is closed");

    honest.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap();
    assert_eq!(running.app.invoked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_slow_invocation_does_not_hold_up_another_connection_and_giving_up_costs_only_its_own() {
    let running = serve_for(own_uid());
    let mut slow = client(&running.path);
    let mut quick = client(&running.path);
    let mut data = Vec::new();
    let (hang, at_once, echo) =
        (capability("hang"), std::time::Duration::from_millis(30), capability("echo"));
    {
        let context = context();
        let hanging = slow.invoke(&hang, &context, "{}", &mut data);
        assert!(tokio::time::timeout(at_once, hanging).await.is_err());
    }
    assert!(!slow.is_idle());
    assert!(quick.invoke(&echo, &context(), "{}", &mut Vec::new()).await.unwrap().success);

    running.app.hang.notify_one();
    slow.invoke(&echo, &context(), r#"{"mine":1}"#, &mut data).await.unwrap();

    assert_eq!(data, br#"{"mine":1}"#, "the late reply was not taken for this one");
    assert!(slow.is_idle());
}

#[tokio::test]
async fn an_application_that_was_restarted_is_reached_again_without_a_double_effect() {
    let running = serve_for(own_uid());
    let mut client = client(&running.path);
    let mut data = Vec::new();
    client.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap();
    let directory = running.path.parent().unwrap().to_owned();
    running.serving.abort();
    assert!(running.serving.await.unwrap_err().is_cancelled());
    let gone = client.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap_err();
    assert!(gone.no_effect);
    assert_eq!(gone.error.code, ErrorCode::Unavailable);

    let runner = PcpServerRunner::bind(&directory, running.app.clone(), own_uid()).unwrap();
    tokio::spawn(runner.run());

    client.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap();
    assert_eq!(running.app.invoked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn connections_over_the_limit_are_told_so_and_the_others_go_on() {
    let running = serve_for(own_uid());
    let mut held = Vec::new();
    for _ in 0..MAX_APP_CONNECTIONS {
        let mut client = client(&running.path);
        client.connect().await.unwrap();
        client.invoke(&capability("echo"), &context(), "{}", &mut Vec::new()).await.unwrap();
        held.push(client);
    }
    let mut over = Connection::connect(&running.path, own_uid()).await.unwrap();
    let frame = over.reader.next().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(frame.payload).contains(r#""code":"limit_reached""#));

    for client in &mut held {
        client.invoke(&capability("echo"), &context(), "{}", &mut Vec::new()).await.unwrap();
    }
}

#[tokio::test]
async fn a_stopper_ends_the_runner_and_frees_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let app = Arc::new(Notes {
        id: AppId::parse("org.x.notes").unwrap(),
        invoked: AtomicU32::new(0),
        hang: Notify::new(),
    });
    let runner = PcpServerRunner::bind(dir.path(), app, own_uid()).unwrap();
    let (stopper, path) = (runner.stopper(), runner.path().to_owned());
    let mut client = client(&path);
    let serving = tokio::spawn(runner.run());
    client.connect().await.unwrap();

    stopper.send_replace(true);

    serving.await.unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn an_answer_that_came_before_its_question_is_not_taken_for_it() {
    // Given an application that answers its first question twice,
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("org.x.notes.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let answer = |n: u32| {
        format!(
            r#"{{"type":"capability_result_msg","success":true,"state_source":"rust","data_json":{{"answer":{n}}}}}"#
        )
    };
    let app = tokio::spawn(async move {
        let mut served = 0;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = Connection::over(stream).unwrap();
            while let Ok(Some(_)) = connection.reader.next().await {
                served += 1;
                for _ in 0..if served == 1 { 2 } else { 1 } {
                    let payload = answer(served);
                    let kind = StreamMessageType::CapabilityResultMsg;
                    if connection.writer.send(kind, payload.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        }
    });
    let mut client = client(&path);
    let mut data = Vec::new();
    client.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap();
    assert_eq!(data, br#"{"answer":1}"#);

    // when two more questions are asked, then each gets its own answer.
    for n in 2..=3 {
        client.invoke(&capability("echo"), &context(), "{}", &mut data).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&data), format!(r#"{{"answer":{n}}}"#));
    }
    app.abort();
}
