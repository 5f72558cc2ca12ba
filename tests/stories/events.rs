//! What happens is told as it happens: each thing once, to whoever may hear of it, and no drop unseen (R-012, R-034,
//!

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use pcp_trust::Signer;
use serde_json::{Value, json};

use crate::support::device::Seat;
use crate::support::pseudo_terminal::on_a_terminal;
use crate::support::{Answer, Device, Plan, uids};

/// Longest life of a follower: whatever it waits for has come on a slow machine by then.
const LIFE: &str = "60";
/// Between two changes that are made until a follower tells of one: its subscription stands then.
const KNOCK: Duration = Duration::from_millis(100);
/// The delivery of subscriptions, in both versions.
const VERSIONS: [&str; 2] = ["--v1", "--v2"];

/// Writes a desktop file as editors and package managers do: a new file takes the place of the old one.
pub(crate) fn entry(device: &Device, id: &str, categories: &str) {
    let text =
        format!("[Desktop Entry]\nType=Application\nName=One\nExec=mail %U\nCategories={categories}\n");
    let new = device.write("entry.new", text);
    fs::rename(new, device.path(&format!("share/applications/{id}.desktop"))).unwrap();
}

/// A running device that has the fake application and a place for desktop files.
fn device() -> (Device, Seat) {
    let mut device = Device::new(&Plan::default());
    fs::create_dir_all(device.path("share/applications")).unwrap();
    let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let seat = device.install(&FakeManifest::standard(id), None);
    device.start();
    (device, seat)
}

/// Puts other bytes in the place of a manifest at one go.
fn replace_manifest(device: &Device, seat: &Seat, bytes: &[u8]) {
    let new = device.write("manifest.new", bytes);
    fs::rename(new, &seat.manifest).unwrap();
}

/// The same with a manifest that the application's own key signs.
fn install_again(device: &Device, seat: &Seat, manifest: &FakeManifest) {
    replace_manifest(device, seat, &manifest.signed(&Signer::from_secret_bytes(&[1; 32])).unwrap());
}

/// Installs one application `org.knock.*` after the other until `wait` is over.
fn while_knocking<T>(device: &Device, wait: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for knock in 0.. {
                entry(device, &format!("org.knock.n{knock}"), "");
                std::thread::sleep(KNOCK);
                if over.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let found = wait();
        over.store(true, Ordering::Relaxed);
        found
    })
}

/// `pcp-cli events`, running.
pub(crate) struct Follower {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Follower {
    /// Starts it as `uid` and changes things until it tells of one.
    ///
    /// Of the applications `org.knock.*` the filters have to let `app_added` through.
    fn start_as(uid: u32, device: &Device, arguments: &[&str]) -> Self {
        let arguments = [&["events", "--timeout", LIFE], arguments].concat();
        let mut command = device.cli_command(uid, &arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut follower = Self { child, out };
        let first = while_knocking(device, || follower.next());
        assert!(first.is_some(), "it ended before it heard anything");
        follower
    }

    pub(crate) fn start(device: &Device, arguments: &[&str]) -> Self {
        Self::start_as(uids::own(), device, arguments)
    }

    pub(crate) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Everything that is told until the application `org.knock.end` is, which is installed now.
    fn until_the_end(&mut self, device: &Device) -> Vec<Value> {
        entry(device, "org.knock.end", "");
        let mut told = Vec::new();
        loop {
            let event = self.next().unwrap_or_else(|| panic!("it ended early: {told:#?}"));
            if event["topic"] == "app_added" && event["app"] == "org.knock.end" {
                return told;
            }
            told.push(event);
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is told about one application.
fn about<'a>(told: &'a [Value], app: &str) -> Vec<&'a Value> {
    told.iter().filter(|event| event["app"] == app).collect()
}

fn topics(events: &[&Value]) -> Vec<String> {
    events.iter().map(|event| event["topic"].as_str().unwrap_or("missed").to_owned()).collect()
}

#[test]
fn an_installed_application_is_told_once_and_each_of_its_capabilities_once() {
    for version in VERSIONS {
        let (device, _seat) = device();
        let mut follower = Follower::start(&device, &["-f", version]);

        entry(&device, "org.example.mail", "Network;Email;");

        let told = follower.until_the_end(&device);
        let events = about(&told, "org.example.mail");
        let shown = device.cli(&["app", "show", "org.example.mail"]).data();
        let mut capabilities: Vec<&Value> = shown["capabilities"].as_array().unwrap().iter().collect();
        assert!(!capabilities.is_empty(), "{shown}");
        let [added, registered @ .., diff] = &events[..] else { panic!("{version}: {told:#?}") };
        assert_eq!((&added["topic"], &added["data"]), (&json!("app_added"), &json!({"method": "desktop"})));
        assert!(registered.iter().all(|event| event["topic"] == "capability_registered"), "{told:#?}");
        let mut ids: Vec<&Value> = registered.iter().map(|event| &event["data"]["id"]).collect();
        let by_text = |id: &&Value| id.as_str().unwrap().to_owned();
        ids.sort_by_key(by_text);
        capabilities.sort_by_key(by_text);
        assert_eq!(ids, capabilities, "exactly one event for each new capability (R-034)");
        assert_eq!(diff["topic"], "capability_diff");
        assert_eq!(diff["data"]["added"].as_array().unwrap().len(), ids.len());
        assert_eq!((&diff["data"]["removed"], &diff["data"]["changed"]), (&json!([]), &json!([])));
    }
}

#[test]
fn an_edited_manifest_is_one_difference_with_each_field_before_and_now() {
    for version in VERSIONS {
        let (device, seat) = device();
        let mut follower = Follower::start(&device, &[version]);
        let mut manifest = FakeManifest::standard(seat.id.clone())
            .changing("create", |capability| capability.confirmation_required = true);
        manifest.capabilities.retain(|capability| capability.action() != "frobnicate");
        for action in ["archive", "label"] {
            manifest.capabilities.push(FakeCapability::new(format!("app.{}.{action}", seat.id)));
        }

        install_again(&device, &seat, &manifest);

        let told = follower.until_the_end(&device);
        let events = about(&told, seat.id.as_str());
        assert_eq!(
            topics(&events),
            ["capability_registered", "capability_registered", "capability_diff"],
            "{told:#?}"
        );
        let data = &events[2]["data"];
        let id = |action: &str| format!("app.{}.{action}", seat.id);
        let added: Vec<&Value> = data["added"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        assert_eq!(added, [&json!(id("archive")), &json!(id("label"))]);
        assert_eq!(data["removed"], json!([id("frobnicate")]));
        let change = json!([{"id": id("create"),
            "fields": [{"field": "confirmation_required", "old": false, "new": true}]}]);
        assert_eq!(data["changed"], change);
        assert_eq!(
            (&data["previous_state"], &data["new_state"]),
            (&json!("ready"), &json!("ready")),
            "the adapter was ready all the time"
        );
    }
}

#[test]
fn a_file_that_is_touched_but_says_the_same_is_no_news() {
    let (device, seat) = device();
    entry(&device, "org.example.mail", "Network;Email;");
    let mut follower = Follower::start(&device, &[]);
    // What was said before is out of the way now.
    entry(&device, "org.knock.begin", "");
    while follower.next().unwrap()["app"] != "org.knock.begin" {}

    let text = fs::read(&seat.manifest).unwrap();
    replace_manifest(&device, &seat, &text);
    for file in [device.path("share/applications/org.example.mail.desktop"), seat.manifest.clone()] {
        File::options().write(true).open(file).unwrap().set_modified(SystemTime::now()).unwrap();
    }
    entry(&device, "org.example.mail", "Network;Email;");

    let told = follower.until_the_end(&device);
    for app in ["org.example.mail", seat.id.as_str()] {
        assert!(about(&told, app).is_empty(), "{app}: {told:#?}");
    }
}

#[test]
fn a_manifest_that_breaks_is_told_with_the_rule_it_breaks() {
    let (device, seat) = device();
    let mut follower = Follower::start(&device, &[]);

    replace_manifest(&device, &seat, b"{}");

    let told = follower.until_the_end(&device);
    let events = about(&told, seat.id.as_str());
    assert_eq!(topics(&events), ["manifest_invalid", "capability_diff"], "{told:#?}");
    let problem = device.cli(&["app", "show", seat.id.as_str()]).data()["problem"].clone();
    assert_eq!(events[0]["data"]["problem"], problem);
    assert_eq!(events[1]["data"]["removed"].as_array().unwrap().len(), 7);
}

#[test]
fn a_follower_hears_only_the_topics_and_applications_it_asked_for() {
    let (device, seat) = device();
    let mut by_topic = Follower::start(&device, &["--topic", "app_added", "--topic", "app_removed"]);
    let mut by_app = Follower::start(&device, &["--app", "org.knock.*"]);
    let mut by_domain =
        Follower::start(&device, &["--domain", "app", "--topic", "app_added,capability_diff"]);

    entry(&device, "org.example.mail", "Network;Email;");
    device.cli(&["app", "show", seat.id.as_str()]).data();
    until(|| device.cli(&["app", "show", "org.example.mail"]).code == 0);
    fs::remove_file(device.path("share/applications/org.example.mail.desktop")).unwrap();
    until(|| device.cli(&["app", "show", "org.example.mail"]).code == 4);

    let told = by_topic.until_the_end(&device);
    assert_eq!(topics(&about(&told, "org.example.mail")), ["app_added", "app_removed"], "{told:#?}");
    assert!(told.iter().all(|event| event["app"].is_string()), "{told:#?}");
    fs::remove_file(device.path("share/applications/org.knock.end.desktop")).unwrap();
    let told = by_app.until_the_end(&device);
    assert!(told.iter().all(|event| event["app"].as_str().unwrap().starts_with("org.knock.")), "{told:#?}");
    fs::remove_file(device.path("share/applications/org.knock.end.desktop")).unwrap();
    let told = by_domain.until_the_end(&device);
    let about = topics(&about(&told, "org.example.mail"));
    assert_eq!(about, ["app_added", "capability_diff", "capability_diff"], "{told:#?}");
}

/// Asks until it is so.
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it did not become so");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_does_not_reach_a_domain_does_not_hear_what_happens_in_it() {
    if !uids::can_tell("who does not reach a domain does not hear what happens in it") {
        return;
    }
    let mut device = Device::new(&Plan::default());
    fs::create_dir_all(device.path("share/applications")).unwrap();
    let capabilities = |actions: &[&str]| {
        let capability = |action: &&str| FakeCapability::read(format!("system.fake.{action}"));
        let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
        FakeManifest::new(id, actions.iter().map(capability).collect())
    };
    let seat = device.install(&capabilities(&["get_value"]), Some("system.fake"));
    device.start();
    let [low, middle, high] = device.uids.callers;
    let mut followers = [low, middle, high].map(|uid| Follower::start_as(uid, &device, &[]));

    install_again(&device, &seat, &capabilities(&["get_value", "get_state"]));
    until(|| device.cli(&["show", "system.fake.get_state"]).code == 0);

    for (follower, hears) in followers.iter_mut().zip([false, false, true]) {
        let told = follower.until_the_end(&device);
        let heard = topics(&about(&told, seat.id.as_str()));
        let all: &[&str] = if hears { &["capability_registered", "capability_diff"] } else { &[] };
        assert_eq!(heard, all, "{told:#?}");
        assert!(hears || !told.iter().any(|event| event.to_string().contains("system.fake")), "{told:#?}");
        fs::remove_file(device.path("share/applications/org.knock.end.desktop")).unwrap();
        until(|| device.cli(&["app", "show", "org.knock.end"]).code == 4);
    }
}

#[test]
fn what_a_slow_follower_misses_is_counted_and_nothing_is_lost_unseen() {
    const APPS: usize = 300;
    for version in VERSIONS {
        let (device, _seat) = device();
        let mut follower = Follower::start(&device, &["--queue", "8", version]);

        // Nobody reads meanwhile: the pipe fills, then the socket, then the queue.
        for n in 0..APPS {
            entry(&device, &format!("org.example.n{n}"), "Network;Email;");
        }
        until(|| device.cli(&["apps", "org.example.n*"]).data().as_array().unwrap().len() == APPS);
        entry(&device, "org.knock.last", "");
        until(|| device.cli(&["app", "show", "org.knock.last"]).code == 0);

        let mut before = follower.next().unwrap();
        let mut missed = 0;
        // The last ones are kept whatever goes: the newest is how things are.
        while before["app"] != "org.knock.last" || before["topic"] != "capability_diff" {
            let event = follower.next().expect("it goes on");
            let number = |event: &Value, name: &str| event[name].as_u64().unwrap();
            let stands_for = event["missed"].as_u64().unwrap_or(1);
            assert_eq!(number(&event, "count"), number(&before, "count") + stands_for, "{before}\n{event}");
            assert!(number(&event, "sequence") >= number(&before, "sequence") + stands_for);
            missed += event["missed"].as_u64().unwrap_or(0);
            before = event;
        }
        assert!(missed > 0, "{version}: a queue of 8 held everything");
        // Each application came, offered something and was a difference.
        assert!(before["count"].as_u64().unwrap() > 3 * APPS as u64, "{before}");
    }
}

#[test]
fn a_follower_ends_when_it_has_seen_enough_or_the_time_is_over() {
    let (mut device, _seat) = device();
    let enough = Follower::start(&device, &["--topic", "app_added", "--count", "1"]);
    assert_eq!(ended(enough), 0);
    let answer = device.cli(&["events", "--timeout", "0.2", "--app", "no.such.app"]);
    assert_eq!((answer.code, answer.out.as_str(), answer.err.as_str()), (0, "", ""));
    let too_few = device.cli(&["events", "--timeout", "0.2", "--app", "no.such.app", "--count", "1"]);
    too_few.refused(7, "timeout");
    device.cli(&["events", "--topic", "weather"]).refused(2, "usage");

    let mut follower = Follower::start(&device, &[]);
    device.stop();
    let mut last = Value::Null;
    while let Some(line) = follower.next() {
        last = line;
    }
    assert_eq!(last["error"]["code"], "daemon_unreachable");
    assert_eq!(ended(follower), 3);
}

fn ended(mut follower: Follower) -> i32 {
    while follower.next().is_some() {}
    follower.child.wait().unwrap().code().unwrap()
}

#[test]
fn on_a_terminal_an_event_is_a_line_for_a_person() {
    let (device, _seat) = device();
    let arguments = ["events", "--timeout", LIFE, "--topic", "app_added", "--count", "1", "--color", "never"];
    let mut command = device.cli_command(uids::own(), &arguments);
    let (code, out, err) = while_knocking(&device, || on_a_terminal(&mut command));
    let answer = Answer { code, out, err };
    assert_eq!((answer.code, answer.err.as_str()), (0, "following; what happens from now on is printed\n"));
    let line = answer.out.trim_end();
    assert!(line["00:00:00.000  ".len()..].starts_with("app_added              org.knock.n"), "{line}");
    assert!(line.ends_with("  found by desktop"), "{line}");
}
