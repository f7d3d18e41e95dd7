//! The platform's own tokens: they say what they were made for, end in time, outlive the change of keys, and cannot be forged.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;

use super::*;
use crate::clock::ManualClock;
use crate::signing::SigningKey;

const ISSUER: &str = "https://gpuaas.example";
const AUDIENCE: &str = "gpuaas-api";

struct Story {
    key: SigningKey,
    clock: Arc<ManualClock>,
    minter: Minter,
}

fn story() -> Story {
    let key = SigningKey::generate().unwrap();
    let clock = Arc::new(ManualClock::at(DateTime::from_timestamp(1_800_000_000, 0).unwrap()));
    let minter = Minter::new(ISSUER, AUDIENCE, SigningKeys::one(key.clone()), clock.clone());
    Story { key, clock, minter }
}

fn bearer() -> Bearer {
    Bearer {
        subject: Uuid::now_v7(),
        actor_type: ActorType::ServiceAccount,
        org_id: Some(Uuid::now_v7()),
        project_id: Some(Uuid::now_v7()),
        scope: "apps.instance.read workflows.read".to_owned(),
        key_id: Some("its-key".to_owned()),
        lifetime: TimeDelta::seconds(900),
    }
}

#[test]
fn a_minted_token_says_what_it_was_minted_for() {
    let Story { minter, .. } = story();
    let minted = minter.mint(bearer()).unwrap();
    assert!(minter.issued(minted.access_token.expose()));
    assert_eq!(minter.verify(minted.access_token.expose()).unwrap(), minted.claims);
    assert!(!format!("{minted:?}").contains(minted.access_token.expose()));
}

#[test]
fn a_token_expires_and_clocks_may_differ_a_little() {
    let Story { minter, clock, .. } = story();
    let minted = minter.mint(bearer()).unwrap();
    clock.advance(TimeDelta::seconds(900 + 29));
    assert!(minter.verify(minted.access_token.expose()).is_ok());
    clock.advance(TimeDelta::seconds(1));
    assert_eq!(minter.verify(minted.access_token.expose()).unwrap_err(), TokenFault::Expired);
}

#[test]
fn tokens_of_a_retired_key_live_on_while_it_is_kept() {
    let Story { minter, key: old, clock } = story();
    let minted = minter.mint(bearer()).unwrap();
    let new = SigningKey::generate().unwrap();
    let pem = |key: &SigningKey| key.private_key_pem().unwrap().expose().clone();
    let both = SigningKeys::from_pem(&(pem(&new) + &pem(&old))).unwrap();
    let rotated = Minter::new(ISSUER, AUDIENCE, both, clock.clone());
    assert!(rotated.verify(minted.access_token.expose()).is_ok());
    let fresh = rotated.mint(bearer()).unwrap();
    let unknown = TokenFault::Invalid("it is signed by an unknown key");
    assert_eq!(minter.verify(fresh.access_token.expose()).unwrap_err(), unknown, "the new key signs");
    let alone = Minter::new(ISSUER, AUDIENCE, SigningKeys::one(new), clock);
    assert_eq!(alone.verify(minted.access_token.expose()).unwrap_err(), unknown);
}

#[test]
fn forged_tokens_are_refused() {
    let Story { minter, key, .. } = story();
    let minted = minter.mint(bearer()).unwrap();
    let claims = serde_json::to_value(&minted.claims).unwrap();
    let with = |name: &str, value: serde_json::Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        key.sign(&changed).unwrap()
    };
    let shared_secret = {
        let header = Header { kid: Some(key.id().to_owned()), ..Header::new(Algorithm::HS256) };
        let public = key.public_key_pem().unwrap();
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(public.as_bytes())).unwrap()
    };
    let (_, payload_and_signature) = minted.access_token.expose().split_once('.').unwrap();
    let (payload, signature) = payload_and_signature.split_once('.').unwrap();
    // {"alg":"none"}
    let unsigned = format!("eyJhbGciOiJub25lIn0.{payload}.");
    let other_subject = with("sub", json!(Uuid::now_v7()));
    let tampered = {
        let parts: Vec<&str> = other_subject.split('.').collect();
        format!("{}.{}.{signature}", parts[0], parts[1])
    };
    for (name, token) in [
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("issued in the future", with("iat", json!(1_800_000_100))),
        ("not yet valid", with("nbf", json!(1_800_000_100))),
        ("no number as expiry", with("exp", json!("never"))),
        ("a shared secret made of the public key", shared_secret),
        ("alg none", unsigned),
        ("alg none without a last part", format!("eyJhbGciOiJub25lIn0.{payload}")),
        ("tampered", tampered),
        ("not ours to read", "garbage".to_owned()),
        ("endless", "a".repeat(100_000)),
        ("another key", SigningKey::generate().unwrap().sign(&claims).unwrap()),
    ] {
        let fault = minter.verify(&token).unwrap_err();
        assert!(matches!(fault, TokenFault::Invalid(_)), "{name}: {fault:?}");
        assert!(!fault.to_string().contains(&token), "{name}");
    }
    let elsewhere = with("aud", json!(["someone-else"]));
    assert_eq!(minter.verify(&elsewhere).unwrap_err(), TokenFault::WrongAudience);
    assert_eq!(minter.verify("").unwrap_err(), TokenFault::Missing);
}
