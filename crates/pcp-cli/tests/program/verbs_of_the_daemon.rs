//! The verbs that ask the daemon: what they send, and what they make of every kind of answer.

use pcp_stream::StreamMessageType as Message;
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::{envelope, pcp_cli, told};

const ROW: &str = r#"{"id":"app.org.portal.notes.create","app_id":"org.portal.notes","domain":"app","name":"New note","description":"Writes a note.","category":"office","input_schema":{"type":"object"},"output_schema":true,"method":"desktop","tier":"1","stability":"stable","version":"1.0","side_effects":true,"confirmation_required":false,"minimum_trust":1,"validates_params":false,"executable":true,"signature":"verified"}"#;

fn json_of(out: &str) -> Value {
    assert_eq!(out.matches('\n').count(), 1, "{out}");
    serde_json::from_str(out).unwrap()
}

#[test]
fn ping_measures_round_trips_on_one_connection() {
    let (code, out, err, asked) = Daemon::answer(Message::Pong, "").run(&["ping", "--count", "3"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let told = json_of(&out);
    assert_eq!((told["ok"].clone(), told["data"]["count"].clone()), (json!(true), json!(3)));
    assert!(told["data"]["min_us"].as_u64() <= told["data"]["max_us"].as_u64());
    assert_eq!(asked, vec![(Message::Ping, String::new()); 3]);
}

#[test]
fn a_listener_of_another_user_gets_nothing_sent() {
    let daemon = Daemon::serve(|_, _| Vec::new());
    let socket = daemon.socket();
    let stranger = (nix::unistd::getuid().as_raw() + 1).to_string();
    let args = ["exec", "app.x.y", "--expect-uid", &stranger, "--socket"];
    let (code, out, _) = told(&pcp_cli().args(args).arg(socket).output().unwrap());
    assert_eq!(code, 3);
    let told = json_of(&out);
    assert_eq!(told["error"]["code"], "daemon_unreachable");
    assert!(told["error"]["message"].as_str().unwrap().contains("nothing was sent"), "{told}");
}

#[test]
fn list_asks_with_its_filters_and_joins_the_pages() {
    let mut page = 0;
    let daemon = Daemon::serve(move |_, _| {
        page += 1;
        let cursor = if page == 1 { r#","cursor":"app.org.portal.notes.create""# } else { "" };
        let payload =
            format!(r#"{{"type":"registry_response","what":"capabilities"{cursor},"rows":[{ROW}]}}"#);
        vec![(Message::RegistryResponse, payload)]
    });
    let (code, out, _, asked) =
        daemon.run(&["list", "--domain", "app", "--method", "desktop", "--app", "org.*"]);
    assert_eq!(code, 0);
    let told = json_of(&out);
    assert_eq!(told["data"].as_array().unwrap().len(), 2);
    let row = json!({"id": "app.org.portal.notes.create", "app_id": "org.portal.notes", "domain": "app",
        "name": "New note", "method": "desktop", "tier": "1", "stability": "stable", "executable": true});
    assert_eq!(told["data"][0], row);
    assert_eq!(asked.len(), 2);
    let first = json!({"type": "registry_query", "what": "capabilities", "domain": "app", "method": "desktop", "app": "org.*"});
    assert_eq!(serde_json::from_str::<Value>(&asked[0].1).unwrap(), first);
    assert!(asked[1].1.contains(r#""cursor":"app.org.portal.notes.create""#), "{}", asked[1].1);
}

#[test]
fn show_prints_every_member_of_the_descriptor() {
    let page = format!(r#"{{"type":"registry_response","what":"capabilities","rows":[{ROW}]}}"#);
    let daemon = |page: &str| {
        let page = page.to_owned();
        Daemon::serve(move |_, _| vec![(Message::RegistryResponse, page.clone())])
    };
    let (code, out, _, asked) = daemon(&page).run(&["show", "editor.org.portal.notes.create"]);
    assert_eq!(code, 0);
    assert_eq!(json_of(&out)["data"], serde_json::from_str::<Value>(ROW).unwrap());
    assert!(asked[0].1.contains(r#""id":"app.org.portal.notes.create""#), "{}", asked[0].1);

    let (code, out, _, _) = daemon(&page).run(&["show", "app.org.portal.notes.create", "--format", "table"]);
    assert_eq!(code, 0);
    for line in ["Signature: verified", "Minimum trust: 1", "Result (JSON Schema)\ntrue\n"] {
        assert!(out.contains(line), "{out}");
    }

    let empty = r#"{"type":"registry_response","what":"capabilities","rows":[]}"#;
    let (code, out, _, _) = daemon(empty).run(&["show", "app.ghost.read"]);
    assert_eq!((code, json_of(&out)["error"]["code"].clone()), (4, json!("not_found")));
}

#[test]
fn apps_shows_signature_and_problem() {
    let rows = r#"{"type":"registry_response","what":"apps","rows":[{"id":"org.example.bad","version":"1","method":"desktop","signature":"invalid","problem":"bad-signature\nerror: x","capabilities":[]}]}"#;
    let daemon = || Daemon::answer(Message::RegistryResponse, rows);
    let (code, out, _, _) = daemon().run(&["apps", "--format", "table"]);
    assert_eq!(code, 0);
    assert!(
        out.contains(
            "org.example.bad  1        -        invalid    0             bad-signature\\nerror: x\n"
        ),
        "{out}"
    );
    let (_, out, _, _) = daemon().run(&["apps"]);
    assert_eq!(json_of(&out)["data"][0]["signature"], "invalid");
}

#[test]
fn snapshot_is_the_whole_registry() {
    let daemon = Daemon::serve(|_, asked| {
        let payload = if asked.contains(r#""what":"apps""#) {
            r#"{"type":"registry_response","what":"apps","rows":[]}"#.to_owned()
        } else {
            format!(r#"{{"type":"registry_response","what":"capabilities","rows":[{ROW}]}}"#)
        };
        vec![(Message::RegistryResponse, payload)]
    });
    let (code, out, _, _) = daemon.run(&["snapshot"]);
    assert_eq!(code, 0);
    assert_eq!(
        json_of(&out)["data"],
        json!({"apps": [], "capabilities": [serde_json::from_str::<Value>(ROW).unwrap()]})
    );
}

/// The daemon's end of an operation, with the operation id of the request.
fn ended(asked: &str, members: &str) -> (Message, String) {
    let asked: Value = serde_json::from_str(asked).unwrap();
    let id = &asked["operation_id"];
    let payload = format!(
        r#"{{"type":"capability_result_msg","operation_id":{id},"state_source":"rust","duration_us":830,{members}}}"#
    );
    (Message::CapabilityResultMsg, payload)
}

#[test]
fn exec_sends_the_intent_in_its_envelope_and_prints_the_end() {
    let daemon = Daemon::serve(|_, asked| {
        let id: Value = serde_json::from_str::<Value>(asked).unwrap()["operation_id"].clone();
        let ack =
            format!(r#"{{"type":"execute_response","operation_id":{id},"sequence":0,"state":"accepted"}}"#);
        let members = r#""success":true,"terminal":"succeeded","effect":"executed_unverified","audit_hash":"5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f","tier":"1","replayed":false,"retry_safe":false,"data_json":{"id":1}"#;
        vec![(Message::ExecuteResponse, ack), ended(asked, members)]
    });
    let (code, out, err, asked) =
        daemon.run(&["exec", "mail.x.send", "to=a@b", "n:=2", "--deadline", "60000"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let told = json_of(&out);
    for (member, value) in [
        ("terminal", json!("succeeded")),
        ("effect", json!("executed_unverified")),
        ("tier", json!("1")),
        ("duration_us", json!(830)),
        ("capability", json!("app.x.send")),
        ("data", json!({"id": 1})),
        ("replayed", json!(false)),
    ] {
        assert_eq!(told["data"][member], value, "{member}");
    }
    assert_eq!(told["data"]["audit_hash"], "5f".repeat(32));
    let asked: Value = serde_json::from_str(&asked[0].1).unwrap();
    let intent =
        json!({"domain": "app", "action": "send", "target_app": "x", "parameters": {"to": "a@b", "n": 2}});
    assert_eq!(asked["intent"], intent);
    assert_eq!((asked["wait"].clone(), asked["dry_run"].clone()), (json!(true), json!(false)));
    assert_eq!(asked["operation_id"], told["data"]["operation_id"]);
    assert!(asked["deadline_ms"].as_u64().unwrap() > 60_000);
}

#[test]
fn an_exec_that_was_refused_says_why_with_the_code_of_the_table() {
    let table = [
        (
            r#""code":"permission_denied","message":"caller holds app","stage":"check_permissions""#,
            "rejected",
            5,
        ),
        (r#""code":"confirmation_unavailable","message":"no confirmer","hint":"connect one""#, "rejected", 6),
        (r#""code":"execution_failed","message":"no note 7""#, "failed", 10),
        (r#""code":"timeout","message":"no answer""#, "outcome_unknown", 9),
    ];
    for (error, terminal, exit) in table {
        let members = move || {
            format!(
                r#""success":false,"terminal":"{terminal}","error":{{{error}}},"audit_hash":"5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f","replayed":false,"retry_safe":true"#
            )
        };
        let daemon = Daemon::serve(move |_, asked| vec![ended(asked, &members())]);
        let (code, out, err, _) = daemon.run(&["exec", "app.x.y"]);
        assert_eq!((code, err.as_str()), (exit, ""), "{error}");
        let told = json_of(&out);
        assert_eq!(told["ok"], false);
        assert_eq!(told["data"]["terminal"], terminal);
        assert_eq!(told["error"]["audit_hash"], "5f".repeat(32));
    }
}

#[test]
fn an_exec_whose_end_never_came_is_unknown_and_names_its_operation() {
    let id = "0191e7a0-0000-7000-8000-000000000001";
    let (code, out, _, _) = Daemon::serve(|_, _| Vec::new()).run(&["exec", "app.x.y", "--op", id]);
    assert_eq!(code, 9);
    let told = json_of(&out);
    assert_eq!(told["error"]["code"], "outcome_unknown");
    assert!(told["error"]["message"].as_str().unwrap().contains(id), "{told}");
    assert!(told["error"]["hint"].as_str().unwrap().starts_with("do not repeat"), "{told}");

    let (code, _, err, _) = Daemon::serve(|_, _| Vec::new()).run(&["exec", "app.x.y", "--format", "table"]);
    assert_eq!(code, 9);
    let lines: Vec<&str> = err.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(lines, ["error:", "cause:", "hint:"], "{err}");
}

#[test]
fn a_person_at_a_terminal_is_told_what_is_waited_for() {
    let daemon = || {
        Daemon::serve(|_, asked| {
            let id: Value = serde_json::from_str::<Value>(asked).unwrap()["operation_id"].clone();
            let ack = format!(
                r#"{{"type":"execute_response","operation_id":{id},"sequence":0,"state":"awaiting_confirmation","confirmation":{{"prompt_id":"p7","expires_ms":1}}}}"#
            );
            let end = r#""success":true,"terminal":"succeeded","replayed":false,"retry_safe":false"#;
            vec![(Message::ExecuteResponse, ack), ended(asked, end)]
        })
    };
    let (code, _, err, _) = daemon().run(&["exec", "app.x.y", "--format", "table"]);
    assert_eq!(code, 0);
    assert!(err.starts_with("waiting for a person to confirm prompt p7 "), "{err}");
    let (_, _, err, _) = daemon().run(&["exec", "app.x.y", "--json"]);
    assert_eq!(err, "");
}

#[test]
fn a_dry_run_prints_the_four_fields_and_the_plan() {
    let members =
        r#""success":true,"terminal":"succeeded","replayed":false,"retry_safe":true,"plan":{"gate":"allow"}"#;
    let daemon = Daemon::serve(move |_, asked| vec![ended(asked, members)]);
    let (code, out, _, asked) = daemon.run(&["exec", "app.x.y", "a=1", "--dry-run", "--no-wait"]);
    assert_eq!(code, 0);
    let intent = json!({"domain": "app", "action": "y", "target_app": "x", "parameters": {"a": "1"}});
    assert_eq!(json_of(&out), json!({"ok": true, "data": {"intent": intent, "plan": {"gate": "allow"}}}));
    assert!(asked[0].1.contains(r#""wait":false,"dry_run":true"#), "{}", asked[0].1);
}

#[test]
fn an_error_response_keeps_its_code_hint_and_stage() {
    let payload = r#"{"type":"error_response","code":"rate_limited","message":"more than 100 requests in one second","hint":"wait a second and ask again","retry_safe":true}"#;
    let (code, out, _, _) = Daemon::answer(Message::ErrorResponse, payload).run(&["list"]);
    assert_eq!(code, 8);
    let error = json!({"code": "rate_limited", "message": "more than 100 requests in one second", "hint": "wait a second and ask again"});
    assert_eq!(json_of(&out), json!({"ok": false, "error": error}));
}

#[test]
fn nonsense_from_the_daemon_is_a_protocol_error() {
    for (message, payload) in [
        (Message::Pong, ""),
        (Message::RegistryResponse, "{}"),
        (
            Message::RegistryResponse,
            r#"{"type":"registry_response","what":"capabilities","rows":[{"id":1}]}"#,
        ),
        (Message::RegistryResponse, r#"{"type":"registry_response","what":"capabilities","rows":{}}"#),
    ] {
        let (code, out, _, _) = Daemon::answer(message, payload).run(&["list"]);
        assert_eq!(code, 3, "{payload}: {out}");
    }
}

#[test]
fn doctor_adds_the_daemons_checks_to_its_own() {
    let daemon = |state: &'static str| {
        Daemon::serve(move |message, asked| match message {
            Message::Ping => vec![(Message::Pong, String::new())],
            _ => {
                assert_eq!(asked, r#"{"type":"query_state","topic":"doctor","arguments":{}}"#);
                let payload = format!(
                    r#"{{"type":"state_response","topic":"doctor","state_source":"rust","data_json":{{"version":"1","checks":[{{"name":"keys","state":"{state}","detail":"d","fix":"do this"}}]}}}}"#
                );
                vec![(Message::StateResponse, payload)]
            }
        })
    };
    let (code, out, _, _) = daemon("ok").run(&["doctor"]);
    let told = json_of(&out);
    assert_eq!(code, 0, "{told}");
    assert_eq!(told["data"]["checks"].as_array().unwrap().len(), 5);
    let (code, out, err, _) = daemon("problem").run(&["doctor", "--format", "table"]);
    assert_eq!(code, 13);
    assert!(out.contains("fix: do this\n"), "{out}");
    assert!(err.starts_with("error: a problem was found with: keys\n"), "{err}");
    let (code, out, _, _) = daemon("problem").run(&["doctor"]);
    let told = json_of(&out);
    assert_eq!((code, told["error"]["code"].clone()), (13, json!("problem_found")));
    assert_eq!(told["data"]["checks"][4]["fix"], "do this");
}

#[test]
fn the_callers_own_uid_is_expected_where_there_is_no_user_pcp() {
    let (code, told) = envelope(&["ping", "--socket", "/nonexistent/pcpd.sock"]);
    assert_eq!((code, told["error"]["code"].clone()), (3, json!("daemon_unreachable")));
}
