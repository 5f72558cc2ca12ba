//! The blocking client against a peer that follows a script.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use pcp_core::{Domain, Envelope, ErrorCode, Intent, OperationId};
use pcp_ipc::payloads::{ExecuteRequest, RegistryQuery, RegistryRows};
use pcp_ipc::{Client, Error, Json};
use pcp_stream::{ProtocolError, StreamClient, StreamMessageType};

const SECOND: Duration = Duration::from_secs(5);

/// A client and a peer that answers each request with the payloads of one line of the script.
fn scripted(script: Vec<Vec<(StreamMessageType, String)>>) -> (Client, JoinHandle<Vec<String>>) {
    let (here, there) = UnixStream::pair().unwrap();
    let peer = std::thread::spawn(move || {
        let mut there = StreamClient::over(there).unwrap();
        let mut asked = Vec::new();
        for answers in script {
            let frame = there.receive(SECOND).unwrap();
            asked.push(String::from_utf8(frame.payload.to_vec()).unwrap());
            for (kind, payload) in answers {
                there
                    .send::<ProtocolError>(kind, SECOND, |out| {
                        out.extend_from_slice(payload.as_bytes());
                        Ok(())
                    })
                    .unwrap();
            }
        }
        asked
    });
    let mut client = Client::over(here).unwrap();
    client.set_timeout(SECOND);
    (client, peer)
}

fn operation(number: u8) -> OperationId {
    OperationId::from_parts(1_700_000_000_000, [number; 10])
}

fn ack(number: u8, sequence: u32, rest: &str) -> (StreamMessageType, String) {
    let id = operation(number);
    let payload =
        format!(r#"{{"type":"execute_response","operation_id":"{id}","sequence":{sequence},{rest}}}"#);
    (StreamMessageType::ExecuteResponse, payload)
}

fn result(number: u8, data: &str) -> (StreamMessageType, String) {
    let id = operation(number);
    let payload = format!(
        r#"{{"type":"capability_result_msg","success":true,"operation_id":"{id}","terminal":"succeeded","state_source":"rust","duration_us":1,"replayed":false,"retry_safe":false,"data_json":{data}}}"#
    );
    (StreamMessageType::CapabilityResultMsg, payload)
}

fn request(number: u8) -> ExecuteRequest<'static> {
    let envelope =
        Envelope { operation_id: operation(number), deadline_ms: None, wait: true, dry_run: false };
    let intent = Intent { domain: Domain::App, action: "create", target_app: "x", parameters: r#"{"a":1}"# };
    ExecuteRequest::new(&envelope, &intent).unwrap()
}

#[test]
fn an_execution_reports_its_acknowledgements_and_ends_with_its_own_result() {
    let (mut client, peer) = scripted(vec![vec![
        ack(1, 0, r#""state":"accepted""#),
        result(9, r#""of an operation given up before""#),
        ack(1, 1, r#""state":"awaiting_confirmation","confirmation":{"prompt_id":"p","expires_ms":7}"#),
        ack(1, 2, r#""state":"executing""#),
        result(1, r#"{"id":4}"#),
    ]]);
    let mut states = Vec::new();

    let ended = client.execute(&request(1), |ack| states.push(ack.state.as_str())).unwrap();

    assert_eq!(ended.data_json.unwrap().as_str(), r#"{"id":4}"#);
    assert_eq!(states, ["accepted", "awaiting_confirmation", "executing"]);
    let asked = peer.join().unwrap();
    assert!(asked[0].ends_with(r#""parameters":{"a":1}}}"#), "{}", asked[0]);
}

#[test]
fn a_refusal_carries_code_hint_and_whether_anything_was_done() {
    let payload = r#"{"type":"error_response","code":"rate_limited","message":"slow down","hint":"wait","retry_safe":true}"#;
    let (mut client, peer) = scripted(vec![vec![(StreamMessageType::ErrorResponse, payload.to_owned())]]);

    let Err(Error::Refused(refusal)) = client.execute(&request(1), |_| ()) else { panic!("not refused") };

    assert_eq!(refusal.error.code, ErrorCode::RateLimited);
    assert_eq!((refusal.error.hint.as_deref(), refusal.retry_safe), (Some("wait"), true));
    peer.join().unwrap();
}

#[test]
fn a_registry_query_follows_the_cursor_to_the_last_page() {
    let page = |rows: &str, cursor: &str| {
        let payload = format!(r#"{{"type":"registry_response","what":"apps",{cursor}"rows":{rows}}}"#);
        vec![(StreamMessageType::RegistryResponse, payload)]
    };
    let (mut client, peer) = scripted(vec![page("[1,2]", r#""cursor":"b","#), page("[3]", "")]);
    let mut rows = Vec::new();

    client
        .registry(&RegistryQuery::all(RegistryRows::Apps), |page| {
            rows.extend(serde_json::from_str::<Vec<u32>>(page.as_str()).unwrap());
            Ok(())
        })
        .unwrap();

    assert_eq!(rows, [1, 2, 3]);
    assert_eq!(
        peer.join().unwrap(),
        [
            r#"{"type":"registry_query","what":"apps"}"#,
            r#"{"type":"registry_query","what":"apps","cursor":"b"}"#
        ]
    );
}

#[test]
fn a_ping_wants_an_empty_pong() {
    let table = [
        (StreamMessageType::Pong, "", None),
        (StreamMessageType::Pong, "{}", Some("pong has no payload, but 2 bytes came with it")),
        (StreamMessageType::StateResponse, "", Some("state_response came as the answer to ping")),
    ];
    for (kind, payload, wanted) in table {
        let (mut client, peer) = scripted(vec![vec![(kind, payload.to_owned())]]);
        assert_eq!(client.ping().err().map(|error| error.to_string()).as_deref(), wanted);
        peer.join().unwrap();
    }
}

#[test]
fn a_question_gets_its_state() {
    let payload =
        r#"{"type":"state_response","topic":"health","state_source":"rust","data_json":{"ok":true}}"#;
    let (mut client, peer) = scripted(vec![vec![(StreamMessageType::StateResponse, payload.to_owned())]]);
    let state = client.query_state("health", Json::EMPTY_OBJECT).unwrap();
    assert_eq!(state.data_json.as_str(), r#"{"ok":true}"#);
    assert_eq!(peer.join().unwrap(), [r#"{"type":"query_state","topic":"health","arguments":{}}"#]);
}

#[test]
fn a_daemon_that_is_gone_is_unreachable_and_one_that_is_silent_times_out() {
    let nowhere = tempfile::tempdir().unwrap();
    let error = Client::connect(&nowhere.path().join("pcpd.sock"), 0).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DaemonUnreachable);

    let (here, there) = UnixStream::pair().unwrap();
    let mut client = Client::over(here).unwrap();
    client.set_timeout(Duration::from_millis(20));
    let error = client.ping().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Timeout);
    drop(there);
    assert_eq!(client.ping().unwrap_err().code(), ErrorCode::DaemonUnreachable);
}

#[test]
fn a_refusal_that_came_before_the_request_could_be_written_is_what_the_caller_hears() {
    let refused = || {
        let (here, there) = UnixStream::pair().unwrap();
        StreamClient::over(there)
            .unwrap()
            .send::<ProtocolError>(StreamMessageType::ErrorResponse, SECOND, |out| {
                out.extend_from_slice(
                    br#"{"type":"error_response","code":"unknown_principal","message":"uid 7"}"#,
                );
                Ok(())
            })
            .unwrap();
        Client::over(here).unwrap()
    };
    assert_eq!(refused().ping().unwrap_err().code(), ErrorCode::UnknownPrincipal);
    let error = refused().execute(&request(1), |_| {}).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownPrincipal);
    let (here, there) = UnixStream::pair().unwrap();
    drop(there);
    assert_eq!(Client::over(here).unwrap().ping().unwrap_err().code(), ErrorCode::DaemonUnreachable);
}
