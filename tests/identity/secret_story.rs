//! A whole life with every kind of secret in it: machines, intents, custody, nodes, webhooks, a deployment, its next version
//! and its end. Afterwards everything that was written or told is searched for each of them: every line down to the last
//! detail, every span, every row, every error, and what people can read.

use agent::Simulated;
use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use clients::assertion;
use clients::signing::SigningKey;
use node_protocol::Key;
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;
use uuid::Uuid;

use super::secrets::everything_stored;
use super::service_accounts;
use crate::dev_secrets::Secrets;
use crate::http::{Answer, Http, admin, project};
use crate::support::docker::PORT;
use crate::support::node::{Node, enrolment};
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::PLATFORM;
use crate::support::registry::shelve;
use crate::support::told::Told;
use crate::support::wrapped;

const TOKEN: &str = "/api/v1/auth/service-account/token";

#[derive(Default)]
struct Story {
    secrets: Secrets,
    errors: String,
}

impl Story {
    fn refused(&mut self, answer: Answer) {
        assert!(answer.status.as_u16() >= 400, "{}", answer.body);
        self.errors.push_str(&answer.body.to_string());
    }

    fn keep(&mut self, name: &str, secret: &Value) -> String {
        self.secrets.keep(name, secret.as_str().unwrap_or_else(|| panic!("{name}: {secret}")))
    }

    fn keep_pem(&mut self, name: &str, pem: &Value) {
        self.secrets.keep_pem(name, pem.as_str().unwrap_or_else(|| panic!("{name}: {pem}")));
    }

    /// Created, rotated, proven by the key itself and by an assertion, and refused.
    async fn machines(&mut self, http: &Http) {
        let made = service_accounts::make(http, json!({ "name": "pipeline" })).await;
        self.keep_pem("a machine's key", &made["private_key_pem"]);
        let path = project(&format!("/service-accounts/{}/rotate-key", id_of(&made)));
        let key = [("x-idempotency-key", "rotate-1")];
        let admin = http.acting("project-admin");
        let rotated = admin.send(Method::POST, &path, &key, Some(json!({}))).await.with(200);
        self.keep_pem("a rotated key", &rotated["private_key_pem"]);
        self.secrets.keep("a machine's token", &service_accounts::bearer(http, &rotated).await);
        let signing = SigningKey::from_pem(made["private_key_pem"].as_str().unwrap()).unwrap();
        let signed =
            assertion::sign(&signing, &id_of(&made).to_string(), PLATFORM, http.realm.now()).unwrap();
        self.secrets.keep("an assertion", &signed);
        let proof =
            json!({ "service_account_id": made["id"], "key_id": made["key_id"], "assertion": signed });
        let nobody = http.bearing("");
        let answer = nobody.post(TOKEN, proof.clone()).await.with(200);
        self.keep("a token for an assertion", &answer["access_token"]);
        self.refused(nobody.post(TOKEN, proof).await);
        let wrong = SigningKey::generate().unwrap().private_key_pem().unwrap();
        let wrong = self.secrets.keep_pem("a stranger's key", wrong.expose());
        let proof =
            json!({ "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": wrong });
        self.refused(nobody.post(TOKEN, proof).await);
        let garbled = self.secrets.keep("a garbled token", "garbled-token-hunter2");
        self.refused(http.bearing(&garbled).get(&project("/workflows")).await);
        let unknown = self.secrets.keep("a field nobody knows", "unknown-field-hunter2");
        self.refused(
            admin.post(&project("/service-accounts"), json!({ "name": "x", "password": unknown })).await,
        );
    }

    /// A credential for pushing, opened once, shown to the registry's token server, and tried again.
    async fn intents(&mut self, http: &Http, number: &str) {
        let body = json!({ "app_slug": "hello", "app_version": number });
        let intent =
            http.acting("publisher").post(&project("/app-artifacts/publish-intents"), body).await.with(201);
        let token = self.keep("a wrapping token", &intent["credential"]["token"]);
        let (username, password) = wrapped::unwrap(http, &intent).await;
        self.secrets.keep("a registry password", &password);
        let again = [("x-vault-token", token.as_str())];
        self.refused(http.bearing("").send(Method::POST, "/v1/sys/wrapping/unwrap", &again, None).await);
        for (shown, good) in
            [(password, true), (self.secrets.keep("a wrong password", "wrong-hunter2"), false)]
        {
            let basic = BASE64_STANDARD.encode(format!("{username}:{shown}"));
            self.secrets.keep("a password as it travels", &basic);
            let request = Request::get("/registry/token").header("authorization", format!("Basic {basic}"));
            let answer = http.bearing("").answer_to(request.body(Body::empty()).unwrap()).await;
            match good {
                true => _ = self.keep("a registry token", &answer.with(200)["token"]),
                false => self.refused(answer),
            }
        }
    }

    /// A secret in custody: given, replaced, handed over. Answers the credential.
    async fn custody(&mut self, http: &Http) -> Uuid {
        let admin = http.acting("project-admin");
        let all = project("/access-credentials");
        let value = self.secrets.keep("a secret in custody", "first-model-hub-hunter2");
        let kept = admin.post(&all, json!({ "name": "model-hub", "value": value })).await.with(201);
        let value = self.secrets.keep("its next value", "second-model-hub-hunter2");
        let path = format!("{all}/{}", id_of(&kept));
        admin.post(&format!("{path}/rotate"), json!({ "value": value })).await.with(200);
        let handed = admin.post(&format!("{path}/deliver"), json!({})).await.with(200);
        self.keep("the token that opens it", &handed["credential"]["token"]);
        assert_eq!(wrapped::open(http, &handed).await["value"], value);
        id_of(&kept)
    }

    async fn webhooks(&mut self, http: &Http) {
        let admin = http.acting("project-admin");
        let body = json!({ "url": "https://hooks.example.com/" });
        let made = admin.post(&project("/webhooks"), body).await.with(201);
        self.keep("a webhook's secret", &made["secret"]);
        let path = project(&format!("/webhooks/{}/rotate-secret", id_of(&made)));
        let rotated = admin.post(&path, json!({})).await.with(200);
        self.keep("its next secret", &rotated["secret"]);
    }

    async fn nodes(&mut self, http: &Http) {
        let made = http.post(&admin("/nodes"), json!({ "name": "gpu-2" })).await.with(201);
        let token = self.keep("an enrolment token", &made["enrolment_token"]);
        let key = Key::generate();
        self.secrets.keep_pem("a node's key", key.private_key_pem().unwrap().expose());
        let nobody = http.bearing("");
        let enrolled = nobody.post("/internal/v1/nodes/enroll", enrolment(&token, &key)).await.with(200);
        self.refused(nobody.post("/internal/v1/nodes/enroll", enrolment(&token, &Key::generate())).await);
        let node = enrolled["node_id"].as_str().unwrap().parse().unwrap();
        let answer = Node::token(http, node, &key).await.with(200);
        self.keep("a node's token", &answer["access_token"]);
    }

    /// What the platform gave to the workload itself, and the token that the workload gets for it.
    async fn workload(&mut self, http: &Http, driver: &Simulated, instance: Uuid) {
        let given = |name: &str| driver.given(instance, name).unwrap_or_else(|| panic!("no {name}"));
        let key = given("GPUAAS_PRIVATE_KEY");
        self.secrets.keep_pem("an instance's key", &key);
        assert_eq!(given("HUB_TOKEN"), "second-model-hub-hunter2", "the secret is where it belongs");
        let proof = json!({
            "service_account_id": given("GPUAAS_SERVICE_ACCOUNT_ID"), "key_id": given("GPUAAS_KEY_ID"),
            "private_key_pem": key,
        });
        let answer = http.bearing("").post(TOKEN, proof).await.with(200);
        let own = http.bearing(&self.keep("an instance's token", &answer["access_token"]));
        own.post(&project(&format!("/app-instances/{instance}/heartbeat")), json!({})).await.with(204);
        self.refused(own.get(&project("/audit")).await);
    }
}

/// A version that cannot start without a secret of the class `hub`.
async fn demanding(platform: &Platform) -> String {
    let classes = json!([{ "class": "hub", "env": "HUB_TOKEN", "required": true }]);
    let more = json!({ "runtime_profile": profile(PORT, 30), "runtime_requirements": { "credential_classes": classes } });
    let number = platform.draft(more).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

/// What the project's people can read about all of it.
async fn readable(http: &Http, runs: &[Uuid], instance: Uuid) -> String {
    let mut paths: Vec<String> = runs.iter().map(|run| project(&format!("/workflows/{run}"))).collect();
    let of_the_project = ["/audit", "/events", "/webhooks", "/access-credentials", "/service-accounts"];
    paths.extend(of_the_project.iter().map(|path| project(&format!("{path}?limit=200"))));
    paths.extend(
        ["", "/events", "/operations", "/receipt"]
            .map(|of| project(&format!("/app-instances/{instance}{of}"))),
    );
    paths.push(admin("/audit?limit=200"));
    let mut text = String::new();
    for path in paths {
        text.push_str(&http.get(&path).await.with(200).to_string());
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_of_a_whole_life_is_written_or_told_anywhere() {
    let told = Told::from_now_on(LevelFilter::TRACE);
    let platform = Platform::new().await;
    let (driver, http) = (Simulated::new(), platform.http.clone());
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let mut story = Story::default();
    for person in ["admin", "project-admin", "operator", "publisher"] {
        story.secrets.keep("a person's token", &http.realm.token(person));
    }
    story.machines(&http).await;
    let (first, second) = (demanding(&platform).await, demanding(&platform).await);
    story.intents(&http, &first).await;
    let hub = story.custody(&http).await;
    story.webhooks(&http).await;
    story.nodes(&http).await;

    let body = json!({
        "app_slug": "hello", "version": first, "display_name": "hello", "credentials": { "hub": hub },
        "placement_intent": { "allocation_id": allocation },
    });
    let made = platform.create(body).await.with(202);
    let (instance, deploy) = (id_of(&made), id_of(&made["workflow"]));
    platform.succeeds(deploy).await;
    story.workload(&http, &driver, instance).await;
    let upgraded = platform.act(instance, "upgrade", json!({ "target_version": second })).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    story.workload(&http, &driver, instance).await;
    let ended = platform.decommission(instance).await;
    assert_eq!(ended["workflow"]["status"], "succeeded", "{ended:#}");

    let runs = [deploy, id_of(&upgraded["workflow"]), id_of(&ended["workflow"])];
    let shown = readable(&http, &runs, instance).await;
    let stored = everything_stored(&platform.story).await;
    agent.end().await;
    platform.end().await;
    for (place, text) in [
        ("what people read", shown),
        ("the database", stored),
        ("the errors", story.errors),
        ("the log", told.lines()),
        ("the traces", told.traces()),
    ] {
        story.secrets.assert_absent(place, &text);
    }
    assert!(told.traces().contains("launch_workload"), "the story is in the traces");
}
