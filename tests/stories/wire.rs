//! The live socket against frames that no honest client sends (R-126..R-142, R-214).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pcp_core::CapabilityId;
use pcp_ipc::Payload as _;
use pcp_ipc::payloads::{RegistryQuery, RegistryRows};
use pcp_stream::{ProtocolError, StreamClient, StreamMessageType, encode_with};
use serde_json::{Value, json};

use crate::support::python::python;
use crate::support::{Answer, Device, Plan, new_operation, request, uids};

const PATIENCE: Duration = Duration::from_secs(10);

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

fn execute_frame(id: &str) -> Vec<u8> {
    let id = CapabilityId::parse(id).unwrap();
    let mut bytes = Vec::new();
    let request = request(new_operation(), &id, "{}");
    encode_with(StreamMessageType::ExecuteRequest, &mut bytes, |out| request.write(out)).unwrap();
    bytes
}

/// Sends `bytes` and the end of the stream; gives everything that came back.
fn say_all(socket: &Path, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The daemon may close before it has read everything.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn every_recorded_frame_case_gets_its_reaction_from_the_live_socket() {
    let mut device = Device::new(&Plan::default());
    device.start();

    let verdicts = pcp_probe::judge_cases(&data("frames"), &device.socket()).unwrap();

    assert_eq!(verdicts.len(), 15);
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| verdict.problem.is_some()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_of_256_type_numbers_gets_exactly_one_answer() {
    let mut device = Device::new(&Plan::default());
    device.start();

    let verdicts = pcp_probe::judge_types(&device.socket()).unwrap();

    assert_eq!(verdicts.len(), 256);
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| verdict.problem.is_some()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_raw_probe_program_judges_the_same_cases() {
    let mut device = Device::new(&Plan::default());
    device.start();
    let mut command = device.program("pcp-probe", uids::own(), &[]);
    command.arg("--socket").arg(device.socket()).arg("frames").arg(data("frames"));

    let answer = Answer::of(&command.output().unwrap());

    assert_eq!(
        (answer.code, answer.out.lines().last()),
        (0, Some("15 of 15 frame cases right")),
        "{answer:?}"
    );
}

#[test]
fn no_single_flipped_bit_of_a_request_makes_anything_happen() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let frame = execute_frame("app.org.example.fake.create");

    for bit in 0..frame.len() * 8 {
        let mut flipped = frame.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        say_all(&device.socket(), &flipped);
        assert_eq!(fake.invocation_count(), 0, "bit {bit} of {}", frame.len() * 8);
    }

    say_all(&device.socket(), &frame);
    assert_eq!(fake.effect_count(), 1, "without a flipped bit it is a request");
}

#[test]
fn a_client_in_another_language_is_understood_and_reads_every_answer() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();
    let requests = [
        json!({"type": 0, "payload": ""}),
        json!({"type": 5, "payload": json!({"type": "execute_request", "kind": "intent", "operation_id": operation,
            "intent": {"domain": "app", "action": "create", "target_app": "org.example.fake", "parameters": {}}}).to_string()}),
        json!({"type": 7, "payload": json!({"type": "registry_query", "what": "capabilities"}).to_string()}),
        json!({"type": 20, "payload": json!({"type": "query_state", "topic": "doctor", "arguments": {}}).to_string()}),
        json!({"type": 9, "payload": "{}"}),
    ];
    let lines: String = requests.iter().map(|line| format!("{line}\n")).collect();
    let (code, bytes) = python("frames.py", &["encode"], lines.as_bytes());
    assert_eq!(code, 0);

    let answer = say_all(&device.socket(), &bytes);

    let (code, agreed) = python("frames.py", &["check"], &answer);
    assert_eq!((code, String::from_utf8(agreed).unwrap().as_str()), (0, "5 frames agree\n"));
    let (_, decoded) = python("frames.py", &["decode"], &answer);
    let rows: Vec<Value> =
        String::from_utf8(decoded).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["pong", "capability_result_msg", "registry_response", "state_response", "error_response"]
    );
    let result: Value = serde_json::from_str(rows[1]["payload"].as_str().unwrap()).unwrap();
    assert_eq!((&result["operation_id"], &result["terminal"]), (&json!(operation), &json!("succeeded")));
    assert_eq!(fake.effect_count(), 1);
}

#[test]
fn a_connection_that_was_handed_to_another_process_executes_nothing() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let socket = device.socket();
    let socket = socket.to_str().unwrap();

    let (code, answer) = python("handed_over.py", &[socket], &execute_frame("app.org.example.fake.create"));

    assert_eq!(code, 0);
    let (_, decoded) = python("frames.py", &["decode"], &answer);
    let said = String::from_utf8(decoded).unwrap();
    assert!(said.contains("permission_denied") && said.contains("has ended"), "{said}");
    assert_eq!(fake.invocation_count(), 0);
}

/// T-07: the number of the process that connected is given to another one, which then speaks over its connection.
#[test]
fn a_reused_process_number_does_not_make_a_process_the_one_that_connected() {
    let number = Path::new("/proc/sys/kernel/ns_last_pid");
    if fs::read_to_string(number).and_then(|last| fs::write(number, last)).is_err() {
        let why = "needs root to choose the next process number";
        uids::skipped("a reused process number does not make a process the one that connected", why);
        return;
    }
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let socket = device.socket();
    let arguments = [socket.to_str().unwrap(), "20"];

    let (code, answers) =
        python("reused_number.py", &arguments, &execute_frame("app.org.example.fake.create"));

    assert_eq!(code, 0, "20 of 20 numbers were reused");
    let (_, decoded) = python("frames.py", &["decode"], &answers);
    let said = String::from_utf8(decoded).unwrap();
    let refused =
        said.lines().filter(|line| line.contains("permission_denied") && line.contains("has ended"));
    assert_eq!((refused.count(), said.lines().count()), (20, 20), "{said}");
    assert_eq!(fake.invocation_count(), 0);
}

#[test]
fn the_bytes_that_the_client_library_sends_are_those_of_the_wire_document() {
    let mut sent = execute_frame("app.org.example.fake.create");
    encode_with::<ProtocolError>(StreamMessageType::Ping, &mut sent, |_| Ok(())).unwrap();
    let query = RegistryQuery::all(RegistryRows::Capabilities);
    encode_with(StreamMessageType::RegistryQuery, &mut sent, |out| query.write(out)).unwrap();

    let (code, agreed) = python("frames.py", &["check"], &sent);

    assert_eq!((code, String::from_utf8(agreed).unwrap().as_str()), (0, "3 frames agree\n"));
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pcp-stream/WIRE.md");
    let (code, _) = python("frames.py", &["vectors", document.to_str().unwrap()], b"");
    assert_eq!(code, 0, "the golden vectors of WIRE.md");
}

#[test]
fn a_client_sends_nothing_to_a_listener_of_another_user() {
    let device = Device::new(&Plan::default());
    let listener = UnixListener::bind(device.path("run/impostor.sock")).unwrap();
    let other = uids::own() + 1;
    for verb in [&["ping"][..], &["exec", "app.org.example.fake.create", "value=secret"], &["list"]] {
        let mut command = device.program("pcp-cli", uids::own(), &[]);
        command.arg("--socket").arg(device.path("run/impostor.sock"));
        command.arg("--expect-uid").arg(other.to_string()).args(verb);
        let listening = std::thread::scope(|scope| {
            let heard = scope.spawn(|| {
                let mut heard = Vec::new();
                listener.accept().unwrap().0.read_to_end(&mut heard).unwrap();
                heard
            });
            let message = Answer::of(&command.output().unwrap()).refused(3, "daemon_unreachable");
            assert!(
                message.contains(&format!("{}", uids::own())) && message.contains(&other.to_string()),
                "{message}"
            );
            heard.join().unwrap()
        });
        assert!(listening.is_empty(), "{verb:?}: {listening:?}");
    }
}

#[test]
fn what_somebody_planted_at_the_sockets_name_is_reported_and_left_alone() {
    let device = Device::new(&Plan::default());
    let elsewhere = device.write("elsewhere", "precious");
    let place = device.socket();
    let plant: [(&str, &dyn Fn()); 3] = [
        ("file", &|| fs::write(&place, "precious").unwrap()),
        ("symbolic link", &|| symlink(&elsewhere, &place).unwrap()),
        ("directory", &|| fs::create_dir(&place).unwrap()),
    ];
    for (kind, plant) in plant {
        plant();
        let before = fs::symlink_metadata(&place).unwrap().ino();

        let (code, said) = device.start_in_vain();

        assert_eq!(code, 1, "{kind}: {said}");
        assert!(said.contains(kind) && said.contains("pcpd.sock"), "{kind}: {said}");
        assert_eq!(fs::symlink_metadata(&place).unwrap().ino(), before, "{kind} was left alone");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
        let _ = fs::remove_file(&place).or_else(|_| fs::remove_dir(&place));
    }
}

#[test]
fn a_socket_of_another_user_at_the_daemons_name_is_not_removed() {
    if !uids::can_tell("a socket of another user at the daemon's name is not removed") {
        return;
    }
    let device = Device::new(&Plan::default());
    let _planted = UnixListener::bind(device.socket()).unwrap();

    let (code, said) = device.start_in_vain();

    assert_eq!(code, 1, "{said}");
    assert!(said.contains("uid 0"), "{said}");
    assert!(device.socket().exists());
}

#[test]
fn a_second_daemon_gives_up_and_the_first_one_goes_on() {
    let mut device = Device::new(&Plan::default());
    device.start();

    let (code, said) = device.start_in_vain();

    assert_eq!(code, 1, "{said}");
    assert_eq!(device.cli(&["ping"]).data()["count"], 1);
}

#[test]
fn sockets_have_the_modes_and_groups_of_their_document() {
    let (mut device, _, _app) = Device::with_fake(&Plan::default());
    let facts = |name: &str| {
        let facts = fs::symlink_metadata(device.path(name)).unwrap();
        (facts.mode() & 0o7777, facts.uid(), facts.gid())
    };
    let uids = device.uids;
    assert_eq!(facts("run"), (0o3771, uids::own(), uids.apps_group));
    assert_eq!(facts("run/pcpd.sock"), (0o660, uids.daemon, uids.clients_group));
    assert_eq!(facts("run/org.example.fake.sock"), (0o660, uids.app, uids.apps_group));
    device.stop();

    let mut closed = Device::new(&Plan { clients: false, ..Plan::default() });
    closed.start();
    assert_eq!(fs::symlink_metadata(closed.socket()).unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn sigterm_ends_the_daemon_cleanly_within_two_seconds_and_its_socket_is_gone() {
    let (mut device, _, _app) = Device::with_fake(&Plan::default());
    let mut client = device.client();
    client.ping().unwrap();

    let took = device.stop();

    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(!device.socket().exists());
    device.start();
    assert_eq!(device.cli(&["ping"]).data()["count"], 1, "it can be started again");
}

#[test]
fn a_burst_beyond_the_rate_is_told_429_and_the_connection_stays_open() {
    let mut device = Device::new(&Plan { own_rate: None, ..Plan::default() });
    device.start();
    let mut client = StreamClient::connect(&device.socket(), device.uids.daemon).unwrap();
    let mut burst = Vec::new();
    for _ in 0..300 {
        encode_with::<ProtocolError>(StreamMessageType::Ping, &mut burst, |_| Ok(())).unwrap();
    }
    let begun = Instant::now();
    client.stream().write_all(&burst).unwrap();

    let mut pongs = 0;
    for _ in 0..300 {
        let frame = client.receive(PATIENCE).unwrap();
        match frame.message_type {
            StreamMessageType::Pong => pongs += 1,
            _ => {
                let answer: Value = serde_json::from_slice(frame.payload).unwrap();
                assert_eq!(answer["code"], "rate_limited");
                assert!(answer["message"].as_str().unwrap().starts_with("429"), "{answer}");
            }
        }
    }
    let refilled = 1 + begun.elapsed().as_millis() / 10;
    assert!((100..=100 + refilled).contains(&pongs), "{pongs} pongs, at most {refilled} refilled");

    let later = (0..1_000).any(|_| {
        client.send::<ProtocolError>(StreamMessageType::Ping, PATIENCE, |_| Ok(())).unwrap();
        client.receive(PATIENCE).unwrap().message_type == StreamMessageType::Pong
    });
    assert!(later, "the connection is served again once the bucket has refilled");
}

#[test]
fn a_malformed_frame_at_an_application_closes_that_connection_and_no_other() {
    let (device, fake, _app) = Device::with_fake(&Plan { own_daemon: true, ..Plan::default() });
    let socket = device.path("run/org.example.fake.sock");

    let answer = say_all(&socket, b"\xff\xff\xff\xffnonsense");

    assert!(!answer.is_empty(), "it is told why");
    assert_eq!(device.cli(&["exec", "app.org.example.fake.create"]).data()["terminal"], "succeeded");
    assert_eq!(fake.effect_count(), 1);
}

#[test]
fn an_application_answers_nobody_but_the_daemons_user() {
    if !uids::can_tell("an application answers nobody but the daemon's user") {
        return;
    }
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let id = CapabilityId::parse("app.org.example.fake.create").unwrap();
    let invocation = json!({"type": "invoke_capability", "capability_id": id.as_str(), "params_json": {}});
    let mut frame = Vec::new();
    encode_with::<ProtocolError>(StreamMessageType::InvokeCapability, &mut frame, |out| {
        out.extend_from_slice(invocation.to_string().as_bytes());
        Ok(())
    })
    .unwrap();

    let (_, decoded) =
        python("frames.py", &["decode"], &say_all(&device.path("run/org.example.fake.sock"), &frame));

    let decoded = String::from_utf8(decoded).unwrap();
    assert!(decoded.contains("permission_denied") && decoded.contains("you are uid 0"), "{decoded}");
    assert_eq!(fake.invocation_count(), 0);
}
