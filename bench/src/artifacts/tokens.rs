//! The registry's token endpoint: a credential is looked up and a token signed for every answer. Beside it, one bare
//! signature of the same kind.

use std::hint::black_box;
use std::time::Instant;

use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::json;

use super::{CONNECTIONS, Place, Size};
use crate::api::Target;
use crate::failure::Failure;
use crate::report::{Bar, Figure, median, percentile, say};

const SIGNATURES: usize = 2_000;

pub(super) async fn measure(place: &Place, size: Size) -> Result<Vec<Figure>, Failure> {
    let wanted = json!({ "app_slug": "hello", "app_version": "1.0.0" });
    let intent = place.ask("/app-artifacts/publish-intents", &wanted).await?;
    let token = intent["credential"]["token"].as_str().unwrap_or_default();
    let unwrap =
        Target::post(place.platform.address, "/v1/sys/wrapping/unwrap", &format!("Bearer {token}"), "{}");
    let opened: serde_json::Value =
        serde_json::from_str(&unwrap.body().await?).map_err(|error| Failure::Setup(error.to_string()))?;
    let (user, password) = (&opened["data"]["username"], &opened["data"]["password"]);
    let pair = format!("{}:{}", user.as_str().unwrap_or_default(), password.as_str().unwrap_or_default());
    let repository = intent["repository"].as_str().unwrap_or_default();
    let path = format!("/registry/token?service=gpuaas-registry&scope=repository:{repository}:pull,push");
    let target = Target::get(place.platform.address, &path, &format!("Basic {}", base64(&pair)));
    say("measuring the registry's tokens…");
    let (mut times, mut signatures) = (Vec::new(), Vec::new());
    for _ in 0..size.rounds {
        signatures.extend(bare_signatures()?);
        times.extend(target.ask_for(size.round, CONNECTIONS).await?);
    }
    let bare = median(&signatures);
    let beside = format!(
        "one bare ES256 signature p50 {bare:.3} ms, p99 {:.3} ms; {CONNECTIONS} connections at once",
        percentile(&signatures, 99.0)
    );
    let figure = |name, value, unit| Figure { name, value, unit, bar: Bar::None, beside: beside.clone() };
    Ok(vec![
        figure("registry tokens p99", percentile(&times, 99.0), "ms"),
        figure("registry tokens p50 to a signature", median(&times) / bare, "times"),
    ])
}

/// Milliseconds of each.
fn bare_signatures() -> Result<Vec<f64>, Failure> {
    let key = SigningKey::from_bytes(&[7; 32].into()).map_err(|error| Failure::Setup(error.to_string()))?;
    let times = (0..SIGNATURES)
        .map(|at| {
            let began = Instant::now();
            let signature: Signature = key.sign(&at.to_le_bytes());
            black_box(signature);
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    Ok(times)
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_STANDARD.encode(text)
}
