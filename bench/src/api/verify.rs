//! What it costs to judge a token that was not seen before: the platform's own and a person's, against the check of one
//! bare signature, in turns on one core.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use chrono::TimeDelta;
use clients::clock::{Clock, SystemClock};
use clients::oidc::{Issuer, IssuerKeys, Verifier};
use clients::signing::{KeyFault, SigningKey, SigningKeys};
use clients::tokens::{Bearer, Minter};
use domain::{ActorType, ProjectRole};
use ed25519_dalek::{Signer, Verifier as _};
use serde_json::json;
use uuid::Uuid;

use crate::failure::Failure;
use crate::report::{Bar, Figure, median};

const URL: &str = "https://gpuaas.example";
const ISSUER: &str = "https://people.example";
const AUDIENCE: &str = "gpuaas-api";

pub async fn measure(times: usize) -> Result<Vec<Figure>, Failure> {
    let (own, people, signature) = (Own::new()?, People::new()?, Signature::new());
    let (mut machines, mut persons, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times {
        let began = Instant::now();
        black_box(own.minter.verify(&own.token)).map_err(|fault| Failure::Setup(fault.to_string()))?;
        let judged = Instant::now();
        black_box(people.verifier.verify(&people.token).await)
            .map_err(|fault| Failure::Setup(fault.to_string()))?;
        let known = Instant::now();
        black_box(signature.check());
        let micros = |from: Instant, to: Instant| (to - from).as_secs_f64() * 1e6;
        machines.push(micros(began, judged));
        persons.push(micros(judged, known));
        bare.push(micros(known, Instant::now()));
    }
    let beside = format!("one bare Ed25519 signature {:.0} µs, {times} times", median(&bare));
    let figure = |name, times: &[f64]| Figure {
        name,
        value: median(times),
        unit: "µs",
        bar: Bar::AtMost(200.0),
        beside: beside.clone(),
    };
    Ok(vec![figure("verifying a machine's token", &machines), figure("verifying a person's token", &persons)])
}

/// The platform's own tokens.
struct Own {
    minter: Minter,
    token: String,
}

impl Own {
    fn new() -> Result<Own, Failure> {
        let keys = SigningKeys::one(SigningKey::generate().map_err(unfit)?);
        let minter = Minter::new(URL, AUDIENCE, keys, Arc::new(SystemClock));
        let bearer = Bearer {
            subject: Uuid::now_v7(),
            actor_type: ActorType::ServiceAccount,
            org_id: Some(Uuid::now_v7()),
            project_id: Some(Uuid::now_v7()),
            scope: ProjectRole::Operator.keys().names().join(" "),
            key_id: None,
            lifetime: TimeDelta::hours(1),
        };
        let token = minter.mint(bearer).map_err(unfit)?.access_token.expose().clone();
        Ok(Own { minter, token })
    }
}

/// Tokens of another issuer, whose keys are already known.
struct People {
    verifier: Verifier,
    token: String,
}

impl People {
    fn new() -> Result<People, Failure> {
        let key = SigningKey::generate().map_err(unfit)?;
        let clock = Arc::new(SystemClock);
        let now = clock.now();
        let claims = json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "preferred_username": "ada",
            "iat": now.timestamp(), "exp": (now + TimeDelta::hours(1)).timestamp(),
        });
        let token = key.sign(&claims).map_err(unfit)?;
        let issuer = Issuer {
            name: ISSUER.to_owned(),
            url: ISSUER.to_owned(),
            audiences: vec![AUDIENCE.to_owned()],
            keys: IssuerKeys::Given(SigningKeys::one(key).public()),
        };
        let verifier =
            Verifier::new(vec![issuer], false, clock).map_err(|fault| Failure::Setup(fault.to_string()))?;
        Ok(People { verifier, token })
    }
}

/// The reference: as many bytes as a token has, signed.
struct Signature {
    key: ed25519_dalek::VerifyingKey,
    message: [u8; 700],
    signature: ed25519_dalek::Signature,
}

impl Signature {
    fn new() -> Signature {
        let signing = ed25519_dalek::SigningKey::from_bytes(&rand::random());
        let message = [7; 700];
        Signature { key: signing.verifying_key(), message, signature: signing.sign(&message) }
    }

    fn check(&self) -> bool {
        self.key.verify(&self.message, &self.signature).is_ok()
    }
}

fn unfit(fault: KeyFault) -> Failure {
    Failure::Setup(fault.to_string())
}
