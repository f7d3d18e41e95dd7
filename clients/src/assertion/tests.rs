//! Only what a registered key signed for this very platform, a moment ago, says who speaks. Each claim is bent in turn, and each way
//! of passing off another key is tried.

use serde_json::Value;

use super::*;

const ACCOUNT: &str = "01970000-0000-7000-8000-00000000000a";
const PLATFORM: &str = "https://gpuaas.example";

// Made once with openssl for these tests; they protect nothing.
const P256_PRIVATE: &str = include_str!("tests/p256.pem");
const P256_PUBLIC: &str = include_str!("tests/p256.pub.pem");
const RSA_PRIVATE: &str = include_str!("tests/rsa2048.pem");
const RSA_PUBLIC: &str = include_str!("tests/rsa2048.pub.pem");
const RSA_SHORT_PUBLIC: &str = include_str!("tests/rsa1024.pub.pem");
const P384_PUBLIC: &str = include_str!("tests/p384.pub.pem");

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::from_pem(&key.public_key_pem().unwrap()).unwrap()
}

fn check(assertion: &str, key: &SigningKey) -> Result<Assertion, TokenFault> {
    verify(assertion, &public(key), &expected(key.id()))
}

fn expected(key_id: &str) -> Expected<'_> {
    Expected { subject: ACCOUNT, audience: PLATFORM, key_id, now: now() }
}

fn claims() -> Value {
    let iat = now().timestamp();
    json!({ "iss": ACCOUNT, "sub": ACCOUNT, "aud": PLATFORM, "jti": "once", "iat": iat, "exp": iat + 60 })
}

#[test]
fn what_a_holder_signs_is_accepted_and_its_id_returned() {
    let key = SigningKey::generate().unwrap();
    let first = check(&sign(&key, ACCOUNT, PLATFORM, now()).unwrap(), &key).unwrap();
    let second = check(&sign(&key, ACCOUNT, PLATFORM, now()).unwrap(), &key).unwrap();
    assert_ne!(first.jti, second.jti);
    assert!(first.replayable_until >= now() + LONGEST, "it must be remembered while it could be replayed");
}

#[test]
fn an_assertion_that_says_anything_else_is_refused() {
    let key = SigningKey::generate().unwrap();
    let iat = now().timestamp();
    let change = |changes: Value| {
        let mut claims = claims();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        check(&key.sign(&claims).unwrap(), &key).unwrap_err()
    };
    let invalid = |fault: TokenFault| assert!(matches!(fault, TokenFault::Invalid(_)), "{fault:?}");
    invalid(change(json!({ "iss": "someone-else" })));
    invalid(change(json!({ "sub": "someone-else" })));
    invalid(change(json!({ "exp": iat + 61 })));
    invalid(change(json!({ "iat": iat + 3600, "exp": iat + 3660 })));
    invalid(change(json!({ "iat": null })));
    invalid(change(json!({ "jti": null })));
    invalid(change(json!({ "jti": "" })));
    invalid(change(json!({ "jti": "x".repeat(129) })));
    assert_eq!(change(json!({ "aud": "https://elsewhere.example" })), TokenFault::WrongAudience);
    assert_eq!(change(json!({ "iat": iat - 100, "exp": iat - 40 })), TokenFault::Expired);
}

#[test]
fn another_key_is_refused_even_under_the_registered_name() {
    let (registered, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let assertion = other.sign(&claims()).unwrap();
    assert_eq!(check(&assertion, &registered).unwrap_err(), TokenFault::Invalid("it names another key"));
    let fault = verify(&assertion, &public(&registered), &expected(other.id())).unwrap_err();
    assert_eq!(fault, TokenFault::Invalid(jwt::WRONG_SIGNATURE));
}

#[test]
fn keys_of_other_kinds_may_be_registered_and_bind_their_algorithm() {
    use jsonwebtoken::{EncodingKey, Header, encode};
    let p256 = EncodingKey::from_ec_pem(P256_PRIVATE.as_bytes()).unwrap();
    let rsa = EncodingKey::from_rsa_pem(RSA_PRIVATE.as_bytes()).unwrap();
    let signed = |algorithm, key: &EncodingKey| encode(&Header::new(algorithm), &claims(), key).unwrap();
    let judge = |assertion: &str, public: &str| {
        verify(assertion, &PublicKey::from_pem(public).unwrap(), &expected("any"))
    };
    assert!(judge(&signed(Algorithm::ES256, &p256), P256_PUBLIC).is_ok());
    assert!(judge(&signed(Algorithm::RS256, &rsa), RSA_PUBLIC).is_ok());
    let confused = signed(Algorithm::HS256, &EncodingKey::from_secret(RSA_PUBLIC.as_bytes()));
    assert!(judge(&confused, RSA_PUBLIC).is_err());
    assert!(judge(&signed(Algorithm::RS512, &rsa), RSA_PUBLIC).is_err(), "not the algorithm of the key");
    assert!(judge(&signed(Algorithm::ES256, &p256), RSA_PUBLIC).is_err());
}

#[test]
fn weak_unknown_and_private_keys_cannot_be_registered() {
    let own = SigningKey::generate().unwrap().private_key_pem().unwrap();
    for pem in [RSA_SHORT_PUBLIC, P384_PUBLIC, RSA_PRIVATE, P256_PRIVATE, own.expose(), "", "hunter2"] {
        assert!(PublicKey::from_pem(pem).is_err(), "{pem}");
    }
}

#[test]
fn a_private_key_proves_its_own_public_half_only() {
    let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let private = key.private_key_pem().unwrap();
    assert!(possesses(private.expose(), &key.public_key_pem().unwrap()).is_ok());
    assert!(possesses(private.expose(), &other.public_key_pem().unwrap()).is_err());
    let fault = possesses("-----BEGIN PRIVATE KEY-----hunter2", &key.public_key_pem().unwrap()).unwrap_err();
    assert!(!fault.to_string().contains("hunter2"));
}
