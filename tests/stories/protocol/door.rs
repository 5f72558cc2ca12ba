//! What only the daemon can show: keys of root, the policy, cancellation, kills (C46, R-056, R-183, R-189, R-192).

use std::time::{Duration, Instant};

use pcp_core::ErrorCode;
use pcp_core::v2::*;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use serde_json::json;

use super::hosts::{Daemon, Host, end, manifest};
use super::signed::{authority_file, request, set_value, signed, text};
use crate::support::{Device, Plan, uids};

/// Longest wait for something that happens at once.
const PATIENCE: Duration = Duration::from_secs(20);

fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// An application that can be invoked and tells no value, so that nothing but an effect makes it hang.
fn invokable() -> FakeManifest {
    let id = manifest().app_id;
    FakeManifest::new(id.clone(), vec![FakeCapability::new(format!("app.{id}.invoke"))])
}

/// What `pcp-cli status` reads off the files, with or without a daemon.
fn offline(host: &Daemon) -> serde_json::Value {
    let ledger = host.device.audit().display().to_string();
    assert_eq!(host.device.cli(&["status", "op-2", "--ledger", &ledger]).data(), serde_json::Value::Null);
    host.device.cli(&["status", "--ledger", &ledger, "op-1"]).data()
}

fn failure(answer: Result<ExecuteReport, ErrorCode>) -> (String, FailureCode, String) {
    let answer = answer.unwrap();
    match answer.terminal().unwrap() {
        Terminal::Rejected { code, message } | Terminal::Failed { code, message } => {
            (answer.terminal().unwrap().kind().to_string(), *code, message.clone())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_key_of_root_no_signed_action_is_taken_and_the_answer_says_what_to_write() {
    let rows: [(Option<(&str, u32)>, &str); 4] = [
        (None, "no host's key is installed"),
        (Some(("issuer = \"x\"\n", 0o644)), "missing field"),
        (Some(("", 0o666)), "can be written by others"),
        (
            Some(("public_key = \"zz\"\nissuer = \"i\"\nkey_id = \"k\"\npolicy_generation = \"g\"\n", 0o644)),
            "64 lower-case",
        ),
    ];
    for (file, why) in rows {
        let mut device = Device::new(&Plan::default());
        let seat = device.install(&manifest(), None);
        let _app = device.start_fake(&seat, &[]);
        Daemon::pin(&device, file.map_or("", |(text, _)| text));
        let path = device.path("etc/portal/pcp/authorities.d/host.toml");
        match file {
            None => std::fs::remove_file(path).unwrap(),
            Some((_, mode)) => {
                std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            }
        }
        device.start();
        let mut client = device.client();
        let error = client.execute_action(pcp_ipc::Json::EMPTY_OBJECT).unwrap_err();
        let pcp_ipc::Error::Refused(refusal) = &error else { panic!("{error}") };
        assert_eq!(refusal.error.code, ErrorCode::Unsupported);
        assert!(refusal.error.message.contains(why), "{why}: {}", refusal.error.message);
        assert!(refusal.error.hint.as_ref().unwrap().contains("authorities.d/NAME.toml"), "{refusal:?}");
        client.ping().unwrap();
    }
}

#[test]
fn two_keys_of_one_name_close_the_door_even_if_they_are_equal() {
    let mut device = Device::new(&Plan::default());
    Daemon::pin(&device, &authority_file());
    device.write("etc/portal/pcp/authorities.d/second.toml", authority_file());
    device.start();
    let code = device.client().execute_action(pcp_ipc::Json::EMPTY_OBJECT).unwrap_err().code();
    assert_eq!(code, ErrorCode::Unsupported);
}

#[test]
fn a_caller_whom_the_policy_denies_gets_nothing_done_by_a_good_grant() {
    let mut device = Device::new(&Plan::default());
    Daemon::pin(&device, &authority_file());
    let own = uids::own();
    device.write_principal(
        "own",
        &format!("uid = {own}\ndomain = \"app\"\ntrust = 0\nmodality = \"console\"\n"),
    );
    let seat = device.install(&manifest(), None);
    let app = Some(device.start_fake(&seat, &[]));
    device.start();
    let mut host = Daemon { device, seat, app };
    let sent = text(&set_value("op-1", &host.target(), "a"));
    let before = host.seat.invocation_count();
    let (kind, code, _) = failure(host.execute(&sent));
    assert_eq!((kind.as_str(), code), ("rejected", FailureCode::PermissionDenied));
    assert_eq!(host.seat.invocation_count(), before, "nothing is asked of the application");
    let lines = host.device.stop_and_read();
    let refusal = lines.iter().find(|line| line.word("kind") == "refusal").unwrap();
    assert_eq!(refusal.record["permission"]["verdict"], "denied");
    assert_eq!(refusal.word("capability"), "app.org.example.fake.set_value");
    assert_eq!(lines.iter().filter(|line| line.word("kind") == "intent").count(), 0);
}

#[test]
fn what_the_host_calls_worse_is_judged_as_that_and_waits_for_a_person() {
    let mut host = Daemon::new();
    let target = host.target();
    for safety in [SafetyClass::External, SafetyClass::Destructive] {
        let mut asked = request("op-1", &target, Action::Invoke {});
        asked.safety = safety;
        let (_, code, message) = failure(host.execute(&text(&signed(asked))));
        assert_eq!(code, FailureCode::PermissionDenied);
        assert!(message.contains("no confirmer is connected"), "{message}");
    }
    assert_eq!(host.all_effects(), 0);
    assert_eq!(end(&host.execute(&text(&request("op-1", &target, Action::Invoke {})))), "succeeded");
}

#[test]
fn the_background_is_refused_where_nobody_can_say_what_happens_to_the_foreground() {
    let mut host = Daemon::new();
    let mut asked = set_value("op-1", &host.target(), "a");
    asked.interaction_mode = InteractionMode::BackgroundOnly;
    let (kind, code, _) = failure(host.execute(&text(&signed(asked))));
    assert_eq!((kind.as_str(), code), ("rejected", FailureCode::Unsupported));
    assert_eq!(host.all_effects(), 0);
}

#[test]
fn an_application_that_was_started_again_is_another_one() {
    let mut host = Daemon::new();
    let target = host.target();
    host.app.take().unwrap().end_cleanly();
    let (_, code, message) = failure(host.execute(&text(&set_value("op-1", &target, "a"))));
    assert_eq!((code, message.as_str()), (FailureCode::StaleTarget, "the application is not running"));
    host.app = Some(host.device.start_fake(&host.seat, &[]));
    let (_, code, message) = failure(host.execute(&text(&set_value("op-1", &target, "a"))));
    assert_eq!(code, FailureCode::StaleTarget);
    assert!(message.starts_with("another process"), "{message}");
    assert_eq!(host.all_effects(), 0);
    let target = host.target();
    assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "a")))), "succeeded");
}

#[test]
fn an_operation_tells_how_far_it_is_and_can_be_cancelled_while_it_runs() {
    let mut host = Daemon::of(&invokable(), &["--hang-after"]);
    let sent = text(&request("op-1", &host.target(), Action::Invoke {}));
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| Daemon::execute_on(&host.device, &sent));
        wait_until("the effect comes", || host.seat.effect_count() == 1);
        let known = host.ask("operation", &json!({ "operation_id": "op-1" })).unwrap();
        assert_eq!(known["state"], json!({"kind": "executing"}), "status waits for nobody");
        assert_eq!(offline(&host)["state"], json!({"kind": "executing"}), "and neither does the ledger");
        let mut other = host.device.client();
        let again = Daemon::execute_on(&host.device, &sent).unwrap();
        assert_eq!(again.acknowledgements[0].state, AckState::Executing {});
        assert!(again.acknowledgements[0].replayed);
        assert_eq!(other.cancel_action("op-2").unwrap_err().code(), ErrorCode::NotFound);
        other.cancel_action("op-1").unwrap();
        running.join().unwrap()
    });
    assert_eq!(end(&ended), "outcome_unknown", "its effect may have happened, and did");
    assert_eq!(host.effects("op-1"), 1);
    assert_eq!(end(&host.execute(&sent)), "outcome_unknown");
    let late = host.device.client().cancel_action("op-1").unwrap_err().code();
    assert_eq!((late, host.effects("op-1")), (ErrorCode::NotFound, 1));
    assert_eq!(offline(&host)["state"]["terminal"]["kind"], "outcome_unknown");
}

#[test]
fn a_kill_between_claim_and_end_leaves_an_unknown_outcome_that_is_never_repeated() {
    let mut host = Daemon::of(&invokable(), &["--hang-after"]);
    let sent = text(&request("op-1", &host.target(), Action::Invoke {}));
    std::thread::scope(|scope| {
        let running = scope.spawn({
            let mut client = host.device.client();
            let sent = &sent;
            move || client.execute_action(pcp_ipc::Json::parse(sent).unwrap()).is_err()
        });
        let begun = Instant::now();
        while host.seat.effect_count() == 0 {
            assert!(begun.elapsed() < PATIENCE, "the effect comes");
            std::thread::sleep(Duration::from_millis(2));
        }
        host.device.kill();
        assert!(running.join().unwrap(), "the client does not know");
    });
    let told = offline(&host);
    assert_eq!(told["state"]["terminal"]["kind"], "outcome_unknown", "nobody has the ledger any more");
    host.device.start();
    let status = host.status("op-1").unwrap();
    assert_eq!(offline(&host)["state"]["terminal"]["message"], told["state"]["terminal"]["message"]);
    let AckState::Terminal { terminal } = &status.state else { panic!("{status:?}") };
    assert!(matches!(**terminal, Terminal::OutcomeUnknown { .. }));
    for _ in 0..2 {
        let again = host.execute(&sent).unwrap();
        assert_eq!(again.terminal(), Some(&**terminal), "whoever asks hears the same");
        host.restart();
    }
    assert_eq!((host.effects("op-1"), host.seat.invocation_count()), (1, 1));
    host.device.trails_are_whole();
}

#[test]
fn of_eight_that_ask_at_once_for_one_operation_one_runs_and_of_eight_operations_all_do() {
    let mut host = Daemon::new();
    let target = host.target();
    let same = text(&set_value("op-same", &target, "a"));
    let own: Vec<String> =
        (0..8).map(|n| text(&request(&format!("op-{n}"), &target, Action::Invoke {}))).collect();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Daemon::execute_on(&host.device, &same).unwrap())).collect();
        let alone: Vec<_> =
            own.iter().map(|sent| scope.spawn(|| end(&Daemon::execute_on(&host.device, sent)))).collect();
        for end in alone {
            assert_eq!(end.join().unwrap(), "succeeded");
        }
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let first = answers.iter().filter(|report| !report.acknowledgements[0].replayed).count();
    assert_eq!(first, 1, "{answers:?}");
    assert_eq!(host.effects("op-same"), 1);
    for n in 0..8 {
        assert_eq!(host.effects(&format!("op-{n}")), 1);
    }
    assert_eq!(end(&host.execute(&same)), "succeeded");
}

#[test]
fn a_hanging_application_costs_its_own_budget_and_not_the_requests_deadline() {
    let mut device = Device::new(&Plan::default());
    Daemon::pin(&device, &(authority_file()));
    let config = std::fs::read_to_string(device.path("pcpd.toml")).unwrap();
    device.write("pcpd.toml", format!("{config}\n[pipeline]\napp_ms = 400\n"));
    let seat = device.install(&invokable(), None);
    let app = Some(device.start_fake(&seat, &["--hang-before"]));
    device.start();
    let mut host = Daemon { device, seat, app };
    let sent = text(&request("op-1", &host.target(), Action::Invoke {}));
    let ended = host.execute(&sent).unwrap();
    let Some(Terminal::OutcomeUnknown { message, .. }) = ended.terminal() else { panic!("{ended:?}") };
    assert!(message.contains("within the budget of its domain"), "{message}");
}

#[test]
fn what_an_application_certifies_not_to_have_done_is_rejected_and_what_it_does_not_is_unknown() {
    for (flags, kind, effects) in
        [(["--fail", "not_found:no_effect"], "rejected", 0), (["--fail", "not_found"], "outcome_unknown", 1)]
    {
        let mut host = Daemon::of(&invokable(), &flags);
        let sent = text(&request("op-1", &host.target(), Action::Invoke {}));
        assert_eq!(end(&host.execute(&sent)), kind);
        assert_eq!(end(&host.execute(&sent)), kind, "and so it stays");
        assert_eq!(host.all_effects(), effects);
    }
}

#[test]
fn no_text_that_is_set_stands_anywhere_on_the_disk() {
    let mut host = Daemon::new();
    let canary = "canary-7f3a9c";
    let sent = text(&set_value("op-1", &host.target(), canary));
    assert_eq!(end(&host.execute(&sent)), "succeeded");
    let lines = host.device.stop_and_read();
    assert!(lines.iter().any(|line| line.word("kind") == "terminal"));
    for file in std::fs::read_dir(host.device.audit()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!bytes.windows(canary.len()).any(|window| window == canary.as_bytes()));
    }
    assert!(!host.device.log().contains(canary));
}
