//! Manifests as they lie on a disk: the shared cases through the inspector, and registered files through the
//! loader that the daemon uses.

#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use pcp_core::{AppId, DetectionMethod, Domain, SignatureStatus, Tier, TrustLevel};
use pcp_native::{JudgedManifest, Outcome, inspect_manifest, load_manifest};
use pcp_trust::{AppRegistration, CanonicalJson, Keyring, Signer};
use serde_json::{Value, json};

const APP: &str = "org.example.notes";

/// A place with a keyring that trusts the author of [`APP`] and room for its manifest.
struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
    author: Signer,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        let author = Signer::from_secret_bytes(&[5; 32]);
        fs::create_dir(path.join("keys")).unwrap();
        fs::set_permissions(path.join("keys"), Permissions::from_mode(0o755)).unwrap();
        let place = Self { _folder: folder, path, author };
        place.write("keys/org.example.notes.pub", &place.author.verifier().to_bytes());
        place
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path.join(name), content).unwrap();
        fs::set_permissions(self.path.join(name), Permissions::from_mode(0o644)).unwrap();
    }

    fn sign(&self, manifest: &Value) -> Vec<u8> {
        CanonicalJson::parse(manifest.to_string().as_bytes()).unwrap().signed_with(&self.author)
    }

    fn registration(&self, manifest: &str, prefix: Option<&str>) -> AppRegistration {
        AppRegistration {
            app_id: AppId::parse(APP).unwrap(),
            uid: 210,
            manifest: self.path.join(manifest),
            prefix: prefix.map(str::to_owned),
            file: PathBuf::from("apps.d/org.example.notes.toml"),
        }
    }

    fn load(&self, manifest: &str, prefix: Option<&str>) -> JudgedManifest {
        let owner = nix::unistd::getuid().as_raw();
        let keyring = Keyring::new(&self.path.join("keys"), owner);
        load_manifest(&self.registration(manifest, prefix), &keyring, owner)
    }
}

fn manifest(ids: &[&str]) -> Value {
    let capability = |id: &&str| json!({"id": id, "name": "N", "parameters": {"type": "object"}, "returns": true, "side_effects": true});
    let capabilities: Vec<_> = ids.iter().map(capability).collect();
    json!({"app_id": APP, "version": "2.1", "manifest_version": "1.0", "capabilities": capabilities})
}

#[test]
fn every_shared_case_is_reported_as_written_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/stories/data/manifest")
        .canonicalize()
        .unwrap();
    let expected: Value = serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    for case in expected["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let looked_up = case["expected_app_id"].as_str().map(|id| AppId::parse(id).unwrap());
        let path = |member: &str| folder.join(case[member].as_str().unwrap());
        let judged = inspect_manifest(&path("file"), Some(&path("key")), looked_up.as_ref());
        let report = serde_json::to_value(&judged.report).unwrap();

        assert_eq!(report["outcome"], case["outcome"], "{name}: {report}");
        assert_eq!(report["reason"], case["reason"], "{name}: {report}");
        assert_eq!(report["expected_app_id"], case["expected_app_id"], "{name}");
        if report.get("canonical_sha256").is_some() && case.get("canonical").is_some() {
            assert_eq!(report["canonical_sha256"], case["canonical_sha256"], "{name}");
        }
        if report.get("signature_hex").is_some() && case.get("signature_hex").is_some() {
            assert_eq!(report["signature_hex"], case["signature_hex"], "{name}");
        }
        assert_eq!(judged.capabilities.is_empty(), judged.report.outcome != Outcome::Verified, "{name}");
        assert_eq!(judged.manifest.is_none(), judged.report.outcome == Outcome::Rejected, "{name}");
    }
}

#[test]
fn a_verified_manifest_gives_typed_tier_one_capabilities() {
    let place = Place::new();
    let declared = json!({"app_id": APP, "version": "2.1", "manifest_version": "1.0", "capabilities": [{
        "id": "editor.org.example.notes.delete", "name": "Delete", "description": "Deletes a note",
        "category": "notes", "parameters": {"properties": {"mode": {"enum": ["soft", "hard"]}}, "type": "object"},
        "returns": {"type": "null"}, "side_effects": true, "confirmation_required": true,
        "auth_level": "elevated", "validates_params": true}]});
    place.write("m.json", &place.sign(&declared));

    let judged = place.load("m.json", None);

    assert_eq!((judged.report.outcome, judged.report.reason), (Outcome::Verified, None));
    let [capability] = &judged.capabilities[..] else { panic!("{judged:?}") };
    assert_eq!(capability.id.as_str(), "app.org.example.notes.delete");
    assert_eq!((capability.app_id.as_str(), capability.domain), (APP, Domain::App));
    assert_eq!(
        (&*capability.name, &*capability.description, &*capability.category),
        ("Delete", "Deletes a note", "notes")
    );
    assert_eq!(
        &*capability.input_schema,
        r#"{"properties":{"mode":{"enum":["soft","hard"]}},"type":"object"}"#
    );
    assert_eq!(&*capability.output_schema, r#"{"type":"null"}"#);
    assert_eq!((capability.method, capability.method.tier()), (DetectionMethod::Desktop, Tier::One));
    assert_eq!((&*capability.version, capability.minimum_trust), ("2.1", TrustLevel::ELEVATED));
    assert!(capability.side_effects && capability.confirmation_required && capability.validates_params);
    assert!(capability.executable && capability.signature == SignatureStatus::Verified);
    assert_eq!(&*capability.clear_parameters, [Box::from("mode")]);
}

#[test]
fn auth_level_is_the_least_trust_of_a_caller() {
    let place = Place::new();
    let table = [
        (None, Some(TrustLevel::USER)),
        (Some("observe"), Some(TrustLevel::OBSERVE)),
        (Some("user"), Some(TrustLevel::USER)),
        (Some("elevated"), Some(TrustLevel::ELEVATED)),
        (Some("system"), Some(TrustLevel::SYSTEM)),
        (Some("root"), None),
        (Some("User"), None),
        (Some(""), None),
    ];
    for (word, trust) in table {
        let mut declared = manifest(&["app.org.example.notes.read"]);
        if let Some(word) = word {
            declared["capabilities"][0]["auth_level"] = word.into();
        }
        place.write("m.json", &place.sign(&declared));
        let judged = place.load("m.json", None);
        assert_eq!(judged.capabilities.first().map(|capability| capability.minimum_trust), trust, "{word:?}");
        assert_eq!(judged.report.reason, trust.is_none().then_some("bad-auth-level"), "{word:?}");
    }
}

#[test]
fn a_manifest_declares_its_own_ids_and_those_granted_and_no_others() {
    let place = Place::new();
    let own = "app.org.example.notes.read";
    let table: [(&[&str], Option<&str>, bool); 12] = [
        (&[own], None, true),
        (&["mail.org.example.notes.read"], None, true),
        (&["system.power.shutdown"], None, false),
        (&[own, "system.power.shutdown"], None, false),
        (&["compositor.org.example.notes.read"], None, false),
        (&["app.org.example.other.read"], None, false),
        (&["app.org.example.notes.more.read"], None, false),
        (&["app.org.example.read"], None, false),
        (&[own, "system.power.shutdown"], Some("system.power"), true),
        (&["system.power.shutdown"], Some("system.network"), false),
        (&["system.power.deep.shutdown"], Some("system.power"), false),
        (&["system.powerful.shutdown"], Some("system.power"), false),
    ];
    for (ids, prefix, allowed) in table {
        place.write("m.json", &place.sign(&manifest(ids)));
        let judged = place.load("m.json", prefix);
        assert_eq!(judged.report.reason, (!allowed).then_some("manifest_scope"), "{ids:?} {prefix:?}");
        assert_eq!(judged.capabilities.len(), if allowed { ids.len() } else { 0 }, "{ids:?} {prefix:?}");
    }
}

#[test]
fn an_unsigned_or_foreign_manifest_offers_nothing() {
    let place = Place::new();
    let declared = manifest(&["app.org.example.notes.read"]);
    place.write("unsigned.json", declared.to_string().as_bytes());
    let stranger = Signer::from_secret_bytes(&[6; 32]);
    let foreign = CanonicalJson::parse(declared.to_string().as_bytes()).unwrap().signed_with(&stranger);
    place.write("foreign.json", &foreign);
    let mut other = declared;
    other["app_id"] = "org.example.other".into();
    place.write("other.json", &place.sign(&other));

    let table = [
        ("unsigned.json", None),
        ("foreign.json", Some("bad-signature")),
        ("other.json", Some("app-id-mismatch")),
    ];
    for (name, reason) in table {
        let judged = place.load(name, None);
        assert_eq!((judged.report.reason, judged.capabilities.len()), (reason, 0), "{name}");
        assert_ne!(judged.report.outcome.signature_status(), SignatureStatus::Verified, "{name}");
    }
}

#[test]
fn a_file_that_somebody_else_could_change_is_not_read() {
    let place = Place::new();
    place.write("m.json", &place.sign(&manifest(&["app.org.example.notes.read"])));
    symlink("m.json", place.path.join("link.json")).unwrap();
    fs::create_dir(place.path.join("d")).unwrap();
    place.write("open.json", b"{}");
    fs::set_permissions(place.path.join("open.json"), Permissions::from_mode(0o666)).unwrap();
    place.write("big.json", &vec![b' '; 256 * 1024 + 1]);

    let table = [
        ("link.json", "bad-file"),
        ("d", "bad-file"),
        ("open.json", "bad-file"),
        ("big.json", "limit"),
        ("none.json", "unreadable"),
    ];
    for (name, reason) in table {
        let report = place.load(name, None).report;
        assert_eq!((report.outcome, report.reason), (Outcome::Rejected, Some(reason)), "{name}");
        assert!(report.why.unwrap().contains(name), "{name}");
    }
}

#[test]
fn without_a_trusted_key_a_signed_manifest_is_rejected() {
    let place = Place::new();
    place.write("m.json", &place.sign(&manifest(&["app.org.example.notes.read"])));
    fs::remove_file(place.path.join("keys/org.example.notes.pub")).unwrap();
    assert_eq!(place.load("m.json", None).report.reason, Some("no-trusted-key"));

    place.write("keys/org.example.notes.pub", &[1; 33]);
    assert_eq!(place.load("m.json", None).report.reason, Some("bad-key-file"));

    fs::set_permissions(place.path.join("keys"), Permissions::from_mode(0o777)).unwrap();
    let report = place.load("m.json", None).report;
    assert_eq!(report.reason, Some("bad-key-file"));
    assert!(report.why.unwrap().contains("can be written by others"));
}

/// Swaps while reading. The full-size race of R-209 has 10 000; a unit test needs enough to meet a few.
const SWAPS: usize = 1000;

#[test]
fn a_manifest_swapped_while_it_is_read_is_one_or_the_other_and_never_half() {
    let place = Place::new();
    let good = place.sign(&manifest(&["app.org.example.notes.read"]));
    let mut evil = manifest(&["system.power.shutdown"]);
    evil["version"] = "6.6".into();
    place.write("m.json", &good);

    std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            for turn in 0..SWAPS {
                let content = if turn % 2 == 0 { evil.to_string().into_bytes() } else { good.clone() };
                place.write("next.json", &content);
                fs::rename(place.path.join("next.json"), place.path.join("m.json")).unwrap();
            }
        });
        let mut loads = 0;
        while !swapper.is_finished() || loads == 0 {
            let judged = place.load("m.json", None);
            loads += 1;
            match judged.report.version.as_deref() {
                Some("2.1") => {
                    assert_eq!((judged.report.outcome, judged.capabilities.len()), (Outcome::Verified, 1))
                }
                Some("6.6") => {
                    assert_eq!((judged.report.reason, judged.capabilities.len()), (Some("manifest_scope"), 0))
                }
                other => panic!("{other:?}: {judged:?}"),
            }
        }
    });
}
