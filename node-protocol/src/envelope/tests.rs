//! A task opens on the node it was signed for and in its time, and nowhere else: forged, stale and misdirected ones are tried.

use super::*;
use crate::key::Key;
use crate::keyring::{Signer, SignerState};

const NODE: Uuid = Uuid::from_u128(7);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn envelope() -> Envelope {
    Envelope {
        task_id: Uuid::from_u128(1),
        node_id: NODE,
        idempotency_key: "run/launch/do".into(),
        instance_id: Some(Uuid::from_u128(2)),
        generation: 3,
        epoch: 1,
        correlation_id: "c-1".into(),
        issued_at: now(),
        expires_at: now() + TimeDelta::minutes(5),
        lease_seconds: 60,
        kind: "oci.remove".into(),
        input: Value::Null,
        secrets: Secrets::default(),
    }
}

fn ring(key: &Key, state: SignerState) -> Keyring {
    let signer = Signer { key_id: key.id(), public_key: key.public().to_pem().unwrap(), state };
    Keyring { version: 1, signers: vec![signer] }
}

fn refused(signed: &Signed, ring: &Keyring, node: Uuid, at: DateTime<Utc>) -> Refusal {
    let opened = Envelope::open(signed, ring, node).and_then(|envelope| envelope.in_time(at));
    opened.expect_err("it must be refused")
}

#[test]
fn a_task_of_ours_opens_on_its_node_in_its_time() {
    let key = Key::generate();
    let signed = Signed::sign(&envelope(), &key).unwrap();
    for state in [SignerState::Active, SignerState::Grace] {
        assert_eq!(Envelope::open(&signed, &ring(&key, state), NODE), Ok(envelope()));
    }
}

#[test]
fn forged_stale_and_misdirected_tasks_are_refused() {
    let (key, stranger) = (Key::generate(), Key::generate());
    let active = ring(&key, SignerState::Active);
    let signed = Signed::sign(&envelope(), &key).unwrap();
    let by_stranger = Signed::sign(&envelope(), &stranger).unwrap();
    assert_eq!(refused(&by_stranger, &active, NODE, now()), Refusal::UnknownSigner);
    let posing = Signed { key_id: key.id(), ..by_stranger };
    assert_eq!(refused(&posing, &active, NODE, now()), Refusal::BadSignature);
    for state in [SignerState::Staged, SignerState::Retired, SignerState::Revoked] {
        assert_eq!(refused(&signed, &ring(&key, state), NODE, now()), Refusal::UnknownSigner, "{state:?}");
    }
    assert_eq!(refused(&signed, &active, Uuid::from_u128(8), now()), Refusal::WrongNode);
    assert_eq!(refused(&signed, &active, NODE, now() + TimeDelta::minutes(6)), Refusal::Expired);
    assert_eq!(refused(&signed, &active, NODE, now() - TimeDelta::minutes(1)), Refusal::Expired);
}

#[test]
fn clocks_may_differ_a_little() {
    for apart in [TimeDelta::seconds(-29), TimeDelta::minutes(5) + TimeDelta::seconds(29)] {
        assert_eq!(envelope().in_time(now() + apart), Ok(()), "{apart}");
    }
}
