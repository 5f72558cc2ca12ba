//! Manifests that do not count, and the applications beside them that still do (R-203..R-209, R-222, R-223).

use std::fs;
use std::path::Path;

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use pcp_trust::{CanonicalJson, Signer};
use serde_json::{Value, json};

use crate::support::device::Seat;
use crate::support::{Device, Plan, uids};

fn manifest(app: &str) -> FakeManifest {
    FakeManifest::standard(AppId::parse(app).unwrap())
}

/// What is wrong with a manifest, in the order of the table below.
fn broken(device: &mut Device, name: &str) -> Seat {
    let app = format!("org.example.{name}");
    let mut made = manifest(&app);
    match name {
        "scope" => made.capabilities.push(FakeCapability::new("system.power.shutdown")),
        "level" => made.capabilities[0].auth_level = Some("root".to_owned()),
        _ => {}
    }
    let seat = device.install(&made, None);
    let text = fs::read_to_string(&seat.manifest).unwrap();
    match name {
        "unsigned" => fs::write(&seat.manifest, made.to_json().to_string()).unwrap(),
        "tampered" => fs::write(&seat.manifest, text.replace("1.0.0", "1.0.1")).unwrap(),
        "otherkey" => {
            let document = CanonicalJson::parse(made.to_json().to_string().as_bytes()).unwrap();
            fs::write(&seat.manifest, document.signed_with(&Signer::from_secret_bytes(&[99; 32]))).unwrap();
        }
        "nokey" => fs::remove_file(device.path(&format!("etc/portal/keys/trusted/{app}.pub"))).unwrap(),
        "absent" => fs::remove_file(&seat.manifest).unwrap(),
        _ => {}
    }
    seat
}

#[test]
fn an_application_whose_manifest_does_not_count_is_shown_with_its_problem_and_offers_nothing() {
    if !uids::can_tell(
        "an application whose manifest does not count is shown with its problem and offers nothing",
    ) {
        return;
    }
    let table = [
        ("unsigned", "unsigned", "not signed"),
        ("tampered", "invalid", "bad-signature"),
        ("otherkey", "invalid", "bad-signature"),
        ("nokey", "invalid", "key"),
        ("scope", "invalid", "manifest_scope"),
        ("level", "invalid", "auth_level"),
        ("absent", "invalid", "unreadable"),
    ];
    let mut device = Device::new(&Plan::default());
    let good = device.install(&manifest("org.example.good"), None);
    let bad: Vec<Seat> = table.iter().map(|(name, ..)| broken(&mut device, name)).collect();
    let _good_app = device.start_fake(&good, &[]);
    device.start();

    let apps = device.cli(&["apps"]).data();
    for (name, signature, problem) in table {
        let id = format!("org.example.{name}");
        let row = apps.as_array().unwrap().iter().find(|row| row["id"] == id.as_str()).unwrap();
        assert_eq!(row["signature"], signature, "{row}");
        assert!(row["problem"].as_str().unwrap().contains(problem), "{name}: {row}");
        device.cli(&["exec", &format!("app.{id}.create")]).refused(4, "target_not_found");
    }
    let listed = device.cli(&["list"]).data();
    let rows = listed.as_array().unwrap();
    assert_eq!(rows.len(), 7, "the good one's alone");
    assert!(rows.iter().all(|row| row["app_id"] == "org.example.good"), "{listed}");
    assert_eq!(device.cli(&["exec", "app.org.example.good.create"]).data()["terminal"], "succeeded");
    assert_eq!(good.effect_count(), 1);
    assert!(bad.iter().all(|seat| seat.invocation_count() == 0));
    assert_eq!(device.cli(&["doctor"]).code, 13, "doctor names them");
}

#[test]
fn another_users_socket_under_an_applications_name_gets_nothing() {
    if !uids::can_tell("another user's socket under an application's name gets nothing") {
        return;
    }
    let mut device = Device::new(&Plan::default());
    let fake = device.install(&manifest(pcp_fakeapp::APP_ID), None);
    let squatter = uids::own() + 61_777;
    fs::set_permissions(&fake.data, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let _squatter = device.start_fake_as(&fake, squatter, &[]);
    device.start();

    for action in ["create", "get_value"] {
        let message =
            device.cli(&["exec", &format!("app.org.example.fake.{action}")]).refused(5, "squatted_socket");
        assert!(
            message.contains(&squatter.to_string()) && message.contains(&fake.uid.to_string()),
            "{message}"
        );
    }

    assert_eq!(fake.invocation_count(), 0, "nothing was sent to it");
    let lines = device.stop_and_read();
    assert!(
        lines.iter().all(|line| line.word("kind") == "intent" || line.word("error") == "squatted_socket")
    );
}

#[test]
fn every_recorded_manifest_case_is_judged_as_recorded() {
    let device = Device::new(&Plan::default());
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/manifest");
    let expected: Value = serde_json::from_slice(&fs::read(data.join("expected.json")).unwrap()).unwrap();
    let cases = expected["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 21);
    for case in cases {
        let place = |member: &str| data.join(case[member].as_str().unwrap()).display().to_string();
        let (file, key) = (place("file"), place("key"));
        let mut arguments = vec!["inspect", "manifest", &file, "--key", &key];
        if let Some(app) = case["expected_app_id"].as_str() {
            arguments.extend(["--expect", app]);
        }

        let report = device.cli(&arguments).data()[0].clone();

        let alternatives = case["alternatives"].as_array().cloned().unwrap_or_default();
        let outcome = report["outcome"] == case["outcome"] || alternatives.contains(&report["outcome"]);
        assert!(outcome, "{}: {report}", case["case"]);
        if case["outcome"] == "rejected" {
            assert_eq!(report["reason"], case["reason"], "{}: {report}", case["case"]);
        } else if report["outcome"] == case["outcome"] && case["policy"] != json!(true) {
            assert_eq!(report["canonical_sha256"], case["canonical_sha256"], "{}", case["case"]);
        }
    }
}
