//! Grants: the golden one, each binding tampered with, keys and signatures that the strict rule refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use pcp_core::v2::{
    ActionRequest, AuthorityVerifier as _, Binding, DenialReason, SafetyClass, SignedAuthority, ValidRequest,
};
use pcp_trust::authority::MAX_AUTHORITY_KEYS;
use pcp_trust::{AuthorityKey, Ed25519AuthorityVerifier, Error, Signer};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../tests/stories/data/protocol/vectors.json")).unwrap()
}

fn golden() -> ActionRequest {
    ActionRequest::parse(vectors()["vectors"][0]["request"].to_string().as_bytes()).unwrap()
}

/// The seed of the golden vectors.
fn signer() -> Signer {
    Signer::from_secret_bytes(&[0x2a; 32])
}

fn key(issuer: &str, key_id: &str) -> AuthorityKey {
    AuthorityKey {
        issuer: issuer.into(),
        key_id: key_id.into(),
        policy_generation: "gen1".into(),
        public_key: signer().verifier().to_bytes(),
    }
}

fn verifier() -> Ed25519AuthorityVerifier {
    Ed25519AuthorityVerifier::new([key("issuer", "k1")]).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sign(authority: &mut SignedAuthority) {
    authority.signature = hex(&signer().sign(&authority.grant.signed_bytes()).to_bytes());
}

fn verdict(request: ActionRequest) -> Result<i64, DenialReason> {
    let request = ValidRequest::new(request).unwrap();
    let verified = verifier().verify(&request);
    verified.map(|authorized| authorized.expires_at_ms).map_err(|denied| {
        assert_eq!(denied.to_string(), "authority denied");
        denied.reason()
    })
}

#[test]
fn the_golden_grant_is_signed_to_the_same_bytes_and_verified() {
    let mut request = golden();
    let expected = vectors()["vectors"][0]["signature"].as_str().unwrap().to_owned();
    assert_eq!(hex(&signer().verifier().to_bytes()), vectors()["public_key"].as_str().unwrap());
    sign(&mut request.authority);
    assert_eq!(request.authority.signature, expected);
    assert_eq!(verdict(request.clone()), Ok(4_102_444_800_000));
    request.authority.signature = expected.to_uppercase();
    assert_eq!(verdict(request), Ok(4_102_444_800_000), "either case");
}

#[test]
fn each_of_the_nine_bindings_is_denied_when_it_is_tampered_with() {
    type Tamper = fn(&mut ActionRequest);
    // With the old signature, and with a new one by the same key: then only what the request or the keyring says differs.
    let table: [(&str, Tamper, DenialReason, Option<DenialReason>); 10] = [
        (
            "operation_id",
            |r| r.authority.grant.operation_id = "op-2".into(),
            DenialReason::Binding(Binding::OperationId),
            Some(DenialReason::Binding(Binding::OperationId)),
        ),
        (
            "subject",
            |r| r.authority.grant.subject = "bob".into(),
            DenialReason::Binding(Binding::Subject),
            Some(DenialReason::Binding(Binding::Subject)),
        ),
        (
            "session_id",
            |r| r.authority.grant.session_id = "s2".into(),
            DenialReason::Binding(Binding::SessionId),
            Some(DenialReason::Binding(Binding::SessionId)),
        ),
        (
            "risk",
            |r| r.authority.grant.risk = SafetyClass::Destructive,
            DenialReason::Binding(Binding::Risk),
            Some(DenialReason::Binding(Binding::Risk)),
        ),
        (
            "action_hash",
            |r| r.authority.grant.action_hash = "0".repeat(64),
            DenialReason::Binding(Binding::ActionHash),
            Some(DenialReason::Binding(Binding::ActionHash)),
        ),
        (
            "issuer",
            |r| r.authority.grant.issuer = "other".into(),
            DenialReason::UnknownKey,
            Some(DenialReason::UnknownKey),
        ),
        (
            "key_id",
            |r| r.authority.grant.key_id = "k2".into(),
            DenialReason::UnknownKey,
            Some(DenialReason::UnknownKey),
        ),
        (
            "policy_generation",
            |r| r.authority.grant.policy_generation = "gen2".into(),
            DenialReason::PolicyGeneration,
            Some(DenialReason::PolicyGeneration),
        ),
        // The host may sign any expiry; nobody else may change it.
        ("expires_at_ms", |r| r.authority.grant.expires_at_ms += 1, DenialReason::Signature, None),
        (
            "protocol_version",
            |r| r.authority.grant.protocol_version = 1,
            DenialReason::Version,
            Some(DenialReason::Version),
        ),
    ];
    for (name, tamper, reason, signed_again) in table {
        let mut request = golden();
        tamper(&mut request);
        assert_eq!(verdict(request.clone()), Err(reason), "{name}");
        sign(&mut request.authority);
        assert_eq!(verdict(request).err(), signed_again, "{name} signed again");
    }
}

#[test]
fn a_grant_does_not_fit_a_request_that_was_changed() {
    type Change = fn(&mut ActionRequest);
    let table: [(Change, Binding); 6] = [
        (|r| r.operation_id = "op-2".into(), Binding::OperationId),
        (|r| r.subject = "bob".into(), Binding::Subject),
        (|r| r.session_id = "s2".into(), Binding::SessionId),
        (|r| r.safety = SafetyClass::External, Binding::Risk),
        (|r| r.deadline_at_ms += 1, Binding::ActionHash),
        (|r| r.interaction_mode = pcp_core::v2::InteractionMode::BackgroundOnly, Binding::ActionHash),
    ];
    for (at, (change, binding)) in table.into_iter().enumerate() {
        let mut request = golden();
        change(&mut request);
        assert_eq!(verdict(request), Err(DenialReason::Binding(binding)), "row {at}");
    }
}

#[test]
fn malformed_grants_are_denied_even_when_they_are_signed() {
    type Change = fn(&mut ActionRequest);
    let table: [(Change, DenialReason); 6] = [
        (|r| r.authority.grant.expires_at_ms = 0, DenialReason::Expiry),
        (|r| r.authority.grant.expires_at_ms = i64::MIN, DenialReason::Expiry),
        (|r| r.authority.grant.issuer = "org.example".into(), DenialReason::Identifier),
        (|r| r.authority.grant.key_id.clear(), DenialReason::Identifier),
        (|r| r.authority.grant.policy_generation = "g".repeat(257), DenialReason::Identifier),
        (
            |r| r.authority.grant.action_hash = r.authority.grant.action_hash.to_uppercase(),
            DenialReason::Binding(Binding::ActionHash),
        ),
    ];
    for (at, (change, reason)) in table.into_iter().enumerate() {
        let mut request = golden();
        change(&mut request);
        sign(&mut request.authority);
        assert_eq!(verdict(request), Err(reason), "row {at}");
    }
}

#[test]
fn every_flipped_bit_of_the_signature_is_denied() {
    let request = golden();
    let good = request.authority.signature_bytes().unwrap();
    for bit in 0..good.len() * 8 {
        let mut bytes = good;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut tampered = request.clone();
        tampered.authority.signature = hex(&bytes);
        assert_eq!(verdict(tampered), Err(DenialReason::Signature), "bit {bit}");
    }
}

#[test]
fn a_second_spelling_of_the_signature_is_denied() {
    // S plus the order of the group satisfies the equation and is not below the order.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut request = golden();
    let mut bytes = request.authority.signature_bytes().unwrap();
    let mut carry = 0_u16;
    for (byte, add) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    request.authority.signature = hex(&bytes);
    assert_eq!(verdict(request), Err(DenialReason::Signature));
}

#[test]
fn an_expired_grant_is_genuine_and_says_until_when_it_held() {
    let mut request = golden();
    request.authority.grant.expires_at_ms = 1;
    sign(&mut request.authority);
    assert_eq!(verdict(request), Ok(1));
}

#[test]
fn a_keyring_refuses_bad_names_twice_named_keys_and_weak_ones() {
    let mut weak = key("issuer", "k2");
    weak.public_key = [0; 32];
    weak.public_key[0] = 1;
    let mut no_point = key("issuer", "k2");
    no_point.public_key = [2; 32];
    let mut other = key("issuer", "k1");
    other.public_key = Signer::from_secret_bytes(&[7; 32]).verifier().to_bytes();
    let mut generation = key("issuer", "k2");
    generation.policy_generation = "gen.2".into();
    let first = || key("issuer", "k1");
    type Matches = fn(&Error) -> bool;
    let table: [(AuthorityKey, Matches); 7] = [
        (key("org.example", "k2"), |e| matches!(e, Error::AuthorityIdentifier { at: 1, field: "issuer" })),
        (key("issuer", ""), |e| matches!(e, Error::AuthorityIdentifier { at: 1, field: "key_id" })),
        (generation, |e| matches!(e, Error::AuthorityIdentifier { at: 1, field: "policy_generation" })),
        (first(), |e| matches!(e, Error::AuthorityDuplicate { at: 1, first: 0 })),
        (other, |e| matches!(e, Error::AuthorityDuplicate { at: 1, first: 0 })),
        (weak, |e| matches!(e, Error::AuthorityKey { at: 1, source } if matches!(**source, Error::KeyWeak))),
        (
            no_point,
            |e| matches!(e, Error::AuthorityKey { at: 1, source } if matches!(**source, Error::KeyInvalid)),
        ),
    ];
    for (at, (second, expected)) in table.into_iter().enumerate() {
        let error = Ed25519AuthorityVerifier::new([first(), second]).unwrap_err();
        assert!(expected(&error), "row {at}: {error:?}");
    }
}

#[test]
fn one_key_may_have_two_names_and_an_empty_keyring_denies_everything() {
    Ed25519AuthorityVerifier::new([key("issuer", "k1"), key("issuer", "k2"), key("other", "k1")]).unwrap();
    let empty = Ed25519AuthorityVerifier::new([]).unwrap();
    let request = ValidRequest::new(golden()).unwrap();
    assert_eq!(empty.verify(&request).unwrap_err().reason(), DenialReason::UnknownKey);
}

#[test]
fn a_keyring_of_the_limit_is_made_and_one_key_more_is_not() {
    let keys = |count: usize| (0..count).map(|at| key("issuer", &format!("k{at}")));
    Ed25519AuthorityVerifier::new(keys(MAX_AUTHORITY_KEYS)).unwrap();
    let error = Ed25519AuthorityVerifier::new(keys(MAX_AUTHORITY_KEYS + 1)).unwrap_err();
    assert!(matches!(error, Error::AuthorityTooMany { keys: 65, limit: MAX_AUTHORITY_KEYS }));
}
