//! Root's files that are wrong: the daemon says where, and grants nothing by mistake.

use std::process::Stdio;

use crate::support::{Answer, Device, Plan, uids};

fn check(device: &Device) -> Answer {
    let mut command = device.daemon_command();
    Answer::of(&command.arg("--check-config").stderr(Stdio::piped()).output().unwrap())
}

#[test]
fn a_broken_configuration_is_2_and_named_with_file_and_line() {
    let device = Device::new(&Plan::default());
    let table = [
        ("[limits]\nrequests_per_secnd = 5\n", ":2: ", "requests_per_secnd"),
        ("[limits]\n\nrequests_per_second = \"many\"\n", ":3: ", "invalid type"),
        ("\n\n[nothing]\n", ":3: ", "nothing"),
        ("[paths]\nstate = 5\n", ":2: ", "invalid type"),
        ("[log]\nlevel = \"loud\"\n", ":2: ", "loud"),
        ("[limits\n", ":1: ", ""),
        ("[limits]\nconnections = 0\n", ": ", "limits.connections is 0, outside 1 to 65536"),
        ("[paths]\nstate = \"here\"\n", ": ", "an absolute path is needed"),
        ("[pipeline]\napp_ms = 999999999\n", ": ", "pipeline.app_ms is 999999999"),
        ("[limits]\nconnections = 1\nconnections = 2\n", ":3: ", "duplicate"),
    ];
    for (text, place, why) in table {
        let file = device.write("pcpd.toml", text);
        for answer in [check(&device), {
            let (code, err) = device.start_in_vain();
            Answer { code, err, out: String::new() }
        }] {
            assert_eq!(answer.code, 2, "{text}: {answer:?}");
            assert!(answer.err.contains(&format!("{}{place}", file.display())), "{text}: {}", answer.err);
            assert!(answer.err.contains(why), "{text}: {}", answer.err);
            assert_eq!(answer.err.trim().lines().count(), 1, "{text}: {}", answer.err);
        }
    }
    assert!(!device.socket().exists());
}

#[test]
fn a_good_configuration_is_0_and_prints_itself_whole() {
    let device = Device::new(&Plan::config("[limits]\nrequests_per_second = 77\n"));
    let answer = check(&device);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert!(answer.err.contains("is good"), "{answer:?}");

    let printed =
        Answer::of(&device.daemon_command().arg("--print-config").stderr(Stdio::piped()).output().unwrap());
    assert_eq!(printed.code, 0);
    let config: toml::Table = printed.out.parse().unwrap();
    assert_eq!(config["limits"]["requests_per_second"].as_integer(), Some(77));
    assert_eq!(config["pipeline"]["system_ms"].as_integer(), Some(15_000));
    device.write("pcpd.toml", &printed.out);
    assert_eq!(check(&device).code, 0, "what it prints is a configuration");
}

#[test]
fn a_configuration_that_is_named_and_missing_is_2() {
    let device = Device::new(&Plan::default());
    std::fs::remove_file(device.path("pcpd.toml")).unwrap();
    let (code, said) = device.start_in_vain();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("pcpd.toml"), "{said}");
}

#[test]
fn a_group_that_does_not_exist_is_2_with_what_to_do() {
    let device = Device::new(&Plan { clients: false, ..Plan::default() });
    let text = std::fs::read_to_string(device.path("pcpd.toml")).unwrap();
    device
        .write("pcpd.toml", text.replace("[identity]\n", "[identity]\nclients_group = \"no-such-group\"\n"));
    let (code, said) = device.start_in_vain();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no-such-group") && said.contains("create it"), "{said}");
}

#[test]
fn a_broken_principal_file_makes_no_principal_and_leaves_the_others() {
    if !uids::can_tell("a broken principal file makes no principal and leaves the others") {
        return;
    }
    let mut device = Device::new(&Plan::default());
    let [app, compositor, system] = device.uids.callers;
    let table = [
        ("app", format!("uid = {app}\ndomain = \"app\"\ntrust = 4\nmodality = \"remote\"\n"), ":3: "),
        (
            "system",
            format!("uid = {system}\ndomain = \"everything\"\ntrust = 3\nmodality = \"remote\"\n"),
            ":2: ",
        ),
    ];
    for (name, text, _) in &table {
        device.write_principal(name, text);
    }
    device.start();

    device.cli_as(app, &["ping"]).refused(5, "unknown_principal");
    device.cli_as(system, &["ping"]).refused(5, "unknown_principal");
    assert_eq!(device.cli_as(compositor, &["ping"]).code, 0);
    let doctor = device.cli(&["doctor"]);
    doctor.refused(13, "problem_found");
    let told = doctor.envelope()["data"]["checks"].to_string();
    for (name, _, place) in &table {
        assert!(told.contains(&format!("principals.d/{name}.toml{place}")), "{told}");
        assert!(device.log().contains(&format!("principals.d/{name}.toml{place}")), "{}", device.log());
    }
}

#[test]
fn two_files_about_one_user_give_that_user_nothing() {
    if !uids::can_tell("two files about one user give that user nothing") {
        return;
    }
    let mut device = Device::new(&Plan::default());
    let [app, compositor, _] = device.uids.callers;
    device.write_principal(
        "again",
        &format!("uid = {app}\ndomain = \"system\"\ntrust = 3\nmodality = \"remote\"\n"),
    );
    device.start();
    device.cli_as(app, &["ping"]).refused(5, "unknown_principal");
    assert_eq!(device.cli_as(compositor, &["ping"]).code, 0);
    assert_eq!(device.cli(&["doctor"]).code, 13);
}

#[test]
fn a_principal_file_that_others_may_write_does_not_count() {
    if !uids::can_tell("a principal file that others may write does not count") {
        return;
    }
    use std::os::unix::fs::PermissionsExt as _;
    let mut device = Device::new(&Plan::default());
    let [app, compositor, system] = device.uids.callers;
    let file = |name: &str| device.path(&format!("etc/portal/pcp/principals.d/{name}.toml"));
    std::fs::set_permissions(file("system"), std::fs::Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::chown(file("app"), Some(app), None).unwrap();
    device.start();
    device.cli_as(system, &["ping"]).refused(5, "unknown_principal");
    device.cli_as(app, &["ping"]).refused(5, "unknown_principal");
    assert_eq!(device.cli_as(compositor, &["ping"]).code, 0);
}

#[test]
fn a_healthy_device_has_no_problem() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let checks = device.cli(&["doctor"]).data();
    let problem = checks["checks"].as_array().unwrap().iter().find(|check| check["state"] == "problem");
    assert_eq!(problem, None);
    let methods: Vec<&str> = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|check| check["name"].as_str().filter(|name| name.contains("(tier ")))
        .collect();
    assert_eq!(methods.len(), 4, "the four methods with their tiers: {methods:?}");
}
