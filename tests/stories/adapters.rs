//! What looks for applications, how well it is, and that a failed one is tried again.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::events::Follower;
use crate::support::{Device, Plan};

/// Longest wait for a change of state: several of the health checks, which come every five seconds.
const PATIENCE: Duration = Duration::from_secs(40);

/// A device that looks for desktop files in two places.
fn device() -> Device {
    let device = Device::new(&Plan::default());
    for folder in ["share/applications", "local/applications"] {
        fs::create_dir_all(device.path(folder)).unwrap();
    }
    let one = format!("data_dirs = [{:?}]", device.path("share"));
    let two = format!("data_dirs = [{:?}, {:?}]", device.path("share"), device.path("local"));
    let config = fs::read_to_string(device.path("pcpd.toml")).unwrap();
    assert!(config.contains(&one), "{config}");
    device.write("pcpd.toml", config.replace(&one, &two));
    device
}

fn adapter(device: &Device) -> Value {
    let listed = device.cli(&["adapters"]).data();
    let rows = listed["adapters"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == "native").unwrap().clone()
}

fn becomes(device: &Device, state: &str, generation: u64) {
    let begun = Instant::now();
    loop {
        let row = adapter(device);
        if (&row["state"], &row["generation"]) == (&json!(state), &json!(generation)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "not {state} of generation {generation}: {row}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// No folder can be looked through where a file lies.
fn broken(device: &Device, place: &str) {
    let folder = device.path(&format!("{place}/applications"));
    fs::remove_dir_all(&folder).unwrap();
    fs::write(folder, "no folder").unwrap();
}

fn mended(device: &Device, place: &str) {
    let folder = device.path(&format!("{place}/applications"));
    fs::remove_file(&folder).unwrap();
    fs::create_dir(folder).unwrap();
}

#[test]
fn an_adapter_that_cannot_see_everything_is_degraded_and_one_that_sees_nothing_has_failed() {
    let mut device = device();
    device.start();
    let row = adapter(&device);
    assert_eq!(
        (&row["method"], &row["tier"], &row["state"], &row["generation"], &row["reason"]),
        (&json!("desktop"), &json!("1"), &json!("ready"), &json!(1), &Value::Null),
        "{row}"
    );
    let topics = ["--topic", "adapter_state_changed,app_added"];
    let mut follower = Follower::start(&device, &topics);

    broken(&device, "local");
    becomes(&device, "degraded", 1);
    mended(&device, "local");
    becomes(&device, "ready", 1);
    for place in ["share", "local"] {
        broken(&device, place);
    }
    becomes(&device, "failed", 1);
    let row = adapter(&device);
    assert!(row["reason"].is_string(), "{row}");
    // It is never used again; another instance is tried after half a minute.
    assert!((1..=30_000).contains(&row["retry_in_ms"].as_u64().unwrap()), "{row}");

    let generation = |event: &Value| event["data"]["generation"].as_u64();
    let mut changes = Vec::new();
    while changes.last().is_none_or(|(_, to, _)| to != "failed") {
        let event = follower.next().unwrap();
        if event["topic"] == "adapter_state_changed" {
            changes.push((event["data"]["from"].clone(), event["data"]["to"].clone(), generation(&event)));
        }
    }
    let change = |from: &str, to: &str| (json!(from), json!(to), Some(1));
    // A check that comes between the two breaks sees it degraded once more.
    assert_eq!(changes[..2], [change("ready", "degraded"), change("degraded", "ready")], "{changes:#?}");
    assert!(
        changes.len() <= 4 && changes.iter().all(|(_, _, generation)| *generation == Some(1)),
        "{changes:#?}"
    );
}
