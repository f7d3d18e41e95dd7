//! CI federation: a pipeline shows its own issuer's token and gets a short one of ours, without any stored key.

use axum::body::Body;
use axum::http::{Method, Request};
use chrono::TimeDelta;
use serde_json::{Value, json};
use uuid::Uuid;

use super::service_accounts::make;
use crate::http::{Http, project};
use crate::support::issuer::Issuer;
use crate::support::story::Story;

const GRANT: &str = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange";
const JWT: &str = "urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt";

/// A CI system with an issuer of its own.
struct Pipelines {
    issuer: Issuer,
}

impl Pipelines {
    async fn start() -> Pipelines {
        Pipelines { issuer: Issuer::start().await }
    }

    fn token(&self, http: &Http, subject: &str, environment: &str) -> String {
        let now = http.realm.now();
        let claims = json!({
            "iss": self.issuer.url, "aud": "gpuaas-ci", "sub": subject, "environment": environment,
            "iat": now.timestamp(), "exp": (now + TimeDelta::minutes(10)).timestamp(),
        });
        self.issuer.sign(&claims)
    }

    async fn trusted(&self, http: &Http, account: &Value) -> Value {
        let body = json!({
            "name": "ci-main", "service_account_id": account["id"], "issuer": self.issuer.url, "audience": "gpuaas-ci",
            "subject_pattern": "repo:acme/*:ref:refs/heads/main", "claims": { "environment": "prod*" },
        });
        http.acting("project-admin").post(&project("/federated-trusts"), body).await.with(201)
    }
}

async fn exchange(http: &Http, trust: &Value, token: &str) -> (u16, Value) {
    let form = format!(
        "grant_type={GRANT}&subject_token={token}&subject_token_type={JWT}&audience={}",
        trust["id"].as_str().unwrap()
    );
    send(http, form).await
}

async fn send(http: &Http, form: String) -> (u16, Value) {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/auth/token-exchange")
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = http.bearing("").open(request.body(Body::from(form)).unwrap()).await;
    let status = answer.status().as_u16();
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_fits_the_trust_acts_as_its_service_account_for_a_quarter_of_an_hour() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let (pipelines, account) = (Pipelines::start().await, make(&http, json!({ "name": "ci" })).await);
    let trust = pipelines.trusted(&http, &account).await;
    let token = pipelines.token(&http, "repo:acme/vision:ref:refs/heads/main", "production");
    let (status, answer) = exchange(&http, &trust, &token).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["expires_in"], &answer["token_type"]), (&json!(900), &json!("Bearer")));
    assert_eq!(answer["issued_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    let pipeline = http.bearing(answer["access_token"].as_str().unwrap());
    assert_eq!(pipeline.get("/api/v1/me").await.with(200)["id"], account["id"]);
    assert_eq!(pipeline.get(&project("/workflows")).await.status, 200);

    let told = http.get("/api/v1/admin/audit?action=exchange_token").await.with(200)["items"][0].clone();
    assert_eq!(told["after"]["subject"], "repo:acme/vision:ref:refs/heads/main");

    let path = project(&format!("/federated-trusts/{}", trust["id"].as_str().unwrap()));
    assert_eq!(http.delete(&path).await.status, 204);
    assert_eq!(exchange(&http, &trust, &token).await.1["error"], "invalid_grant");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_fit_gets_the_errors_of_oauth_and_an_audit_entry() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let (pipelines, account) = (Pipelines::start().await, make(&http, json!({ "name": "ci" })).await);
    let trust = pipelines.trusted(&http, &account).await;
    let main = "repo:acme/vision:ref:refs/heads/main";
    let stranger = Pipelines { issuer: pipelines.issuer.with_another_key() };
    let unknown = json!({ "id": Uuid::now_v7() });
    for (trust, token) in [
        (&trust, pipelines.token(&http, "repo:evil/vision:ref:refs/heads/main", "production")),
        (&trust, pipelines.token(&http, "repo:acme/vision:ref:refs/heads/dev", "production")),
        (&trust, pipelines.token(&http, main, "staging")),
        (&trust, stranger.token(&http, main, "production")),
        (&trust, http.realm.token("admin")),
        (&trust, "garbage".to_owned()),
        (&unknown, pipelines.token(&http, main, "production")),
    ] {
        let (status, answer) = exchange(&http, trust, &token).await;
        assert_eq!((status, &answer["error"]), (400, &json!("invalid_grant")), "{answer}");
        assert!(!answer.to_string().contains(&token), "{answer}");
    }
    let denied = http.get("/api/v1/admin/audit?action=exchange_token&result=denied").await.with(200);
    assert_eq!(denied["items"].as_array().unwrap().len(), 7);
    let (status, answer) = send(&http, "grant_type=password".to_owned()).await;
    assert_eq!((status, &answer["error"]), (400, &json!("invalid_request")));

    let path = project(&format!("/service-accounts/{}/disable", account["id"].as_str().unwrap()));
    http.post(&path, json!({})).await.with(200);
    let fitting = pipelines.token(&http, main, "production");
    assert_eq!(exchange(&http, &trust, &fitting).await.1["error"], "invalid_grant");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trust_names_a_public_issuer_a_narrow_subject_and_an_account_of_the_project() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let account = make(&http, json!({ "name": "ci" })).await;
    let good = json!({
        "name": "ci", "service_account_id": account["id"], "issuer": "https://ci.example", "audience": "a",
        "subject_pattern": "repo:acme/*",
    });
    for (field, value, status, code) in [
        ("issuer", json!("http://ci.example"), 400, "validation_error"),
        ("issuer", json!("ftp://ci.example"), 400, "validation_error"),
        ("subject_pattern", json!("**"), 400, "validation_error"),
        ("claims", json!({ "environment": 7 }), 400, "validation_error"),
        ("service_account_id", json!(Uuid::now_v7()), 404, "service_account_not_found"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let refused = http.post(&project("/federated-trusts"), body.clone()).await.with(status);
        assert_eq!(refused["code"], code, "{body}");
    }
    http.post(&project("/federated-trusts"), good).await.with(201);
    story.end().await;
}
