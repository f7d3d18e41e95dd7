//! The API in one process and the workers in another, both the real binary, with a transaction pooler before the database.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use clients::seal::Sealer;
use clients::signing::SigningKey;
use domain::PlatformRole;
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use store::users;

use crate::support::cluster::Folder;
use crate::support::database::TestDatabase;
use crate::support::issuer::Issuer;
use crate::support::pooler::Pooler;
use crate::support::process::{Said, Serve, gpuaas};
use crate::support::realm;

/// An address that nobody listens on yet.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap()
}

/// Asks until somebody answers there.
async fn answered(url: &str, serving: &mut Serve) -> Response {
    loop {
        match Client::new().get(url).send().await {
            Ok(answer) => return answer,
            Err(_) => assert!(serving.is_running(), "it ended: {}", serving.said()),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The platform's administrator, known by an issuer that the serving processes are told to trust.
struct Split {
    database: TestDatabase,
    pooler: Pooler,
    folder: Folder,
    issuer: Issuer,
    address: SocketAddr,
    keys: (String, String),
}

impl Split {
    async fn new() -> Split {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let database = TestDatabase::new().await;
        let pool = database.pool();
        realm::settle(&pool).await;
        let issuer = Issuer::start().await;
        let mut tx = pool.begin().await.unwrap();
        let admin = users::sign_in(&mut tx, &issuer.url, "admin", "admin").await.unwrap();
        users::set_platform_role(&mut tx, admin.id, PlatformRole::PlatformSuperadmin).await.unwrap();
        tx.commit().await.unwrap();
        let signing = SigningKey::generate().unwrap().private_key_pem().unwrap().expose().clone();
        let sealing = Sealer::generate_line("k1").expose().clone();
        let pooler = Pooler::before(&database);
        let folder = Folder::new();
        Split { database, pooler, folder, issuer, address: free(), keys: (signing, sealing) }
    }

    fn settings(&self, more: &[String]) -> Vec<String> {
        let (signing, sealing) = &self.keys;
        let mut all = vec![
            "database.pooler=true".to_owned(),
            format!("auth.issuers={} gpuaas", self.issuer.url),
            "auth.loopback_http=true".to_owned(),
            format!("auth.public_url=http://{}", self.address),
            format!("auth.signing_keys={signing}"),
            format!("auth.sealing_keys={sealing}"),
        ];
        all.extend_from_slice(more);
        all.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect()
    }

    fn api(&self, more: &[String]) -> Serve {
        let (address, settings) = (self.address.to_string(), self.settings(more));
        let mut arguments = vec!["--listen", &address];
        arguments.extend(settings.iter().map(String::as_str));
        Serve::api(&self.folder.0, &self.pooler.url(&self.database), &arguments)
    }

    fn workers(&self, more: &[String]) -> Serve {
        let settings = self.settings(more);
        let arguments: Vec<&str> = settings.iter().map(String::as_str).collect();
        Serve::workers(&self.folder.0, &self.pooler.url(&self.database), &arguments)
    }

    async fn ask(&self, method: Method, path: &str) -> (StatusCode, Value) {
        let now = Utc::now();
        let token = self.issuer.sign(&json!({
            "iss": self.issuer.url, "aud": "gpuaas", "sub": "admin", "preferred_username": "admin",
            "iat": now.timestamp(), "exp": (now + TimeDelta::hours(1)).timestamp(),
        }));
        let asked =
            Client::new().request(method, format!("http://{}{path}", self.address)).bearer_auth(token);
        let answer = asked.json(&json!({})).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_accepts_another_drives_with_a_pooler_before_the_database() {
    let split = Split::new().await;
    let mut api = split.api(&[]);
    assert_eq!(answered(&format!("http://{}/readyz", split.address), &mut api).await.status(), 200);
    let (status, schedules) = split.ask(Method::GET, "/api/v1/admin/schedules").await;
    assert_eq!(status, 200, "{schedules:#}");
    let name = schedules["items"][0]["name"].as_str().unwrap();
    let (status, run) = split.ask(Method::POST, &format!("/api/v1/admin/schedules/{name}/run")).await;
    assert_eq!(status, 202, "{run:#}");
    let href = run["href"].as_str().unwrap();
    let (_, shown) = split.ask(Method::GET, href).await;
    assert_eq!(shown["stuck_cause"]["code"], "unknown_version", "nobody drives yet: {shown:#}");

    let probes = free();
    let mut workers = split.workers(&[format!("server.probes_listen={probes}")]);
    let ready = answered(&format!("http://{probes}/readyz"), &mut workers).await;
    assert_eq!(ready.status(), 200);
    let (status, ended) = split.ask(Method::GET, &format!("{href}?wait=60s")).await;
    assert_eq!((status.as_u16(), &ended["status"]), (200, &json!("succeeded")), "{ended:#}");
    let figures = answered(&format!("http://{probes}/metrics"), &mut workers).await.text().await.unwrap();
    assert!(figures.contains("gpuaas_engine_drives_in_flight"), "{figures}");
    let elsewhere = answered(&format!("http://{probes}/api/v1/me"), &mut workers).await;
    assert_eq!(elsewhere.status(), 404, "it answers nothing but how it is");

    let url = split.pooler.url(&split.database);
    let said: Said =
        gpuaas(&["doctor", "--database-url", &url, "--set", "database.pooler=true"]).output().unwrap().into();
    // The tests' server forgets what a power cut would take, and lets its superuser serve; nothing else is wrong.
    let wrong: Vec<&str> = said.stdout.lines().filter(|line| line.contains(" WRONG ")).collect();
    let checks: Vec<&str> = wrong.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(checks, ["durability", "rights"], "{said:?}");
    for serving in [api, workers] {
        serving.terminate();
        let (status, said) = serving.ends();
        assert!(status.success(), "{said}");
    }
    let mut conn = split.database.pool().acquire().await.unwrap();
    assert_eq!(engine::check_invariants(&mut conn).await.unwrap(), []);
    drop(conn);
    split.database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stops_says_so_while_it_still_takes_requests() {
    let split = Split::new().await;
    let mut api = split.api(&["server.notice_ms=600000".to_owned()]);
    let ready = format!("http://{}/readyz", split.address);
    assert_eq!(answered(&ready, &mut api).await.status(), 200);
    api.terminate();
    while answered(&ready, &mut api).await.status() != 503 {}
    let (status, _) = split.ask(Method::GET, "/api/v1/admin/schedules").await;
    assert_eq!(status, 200, "requests that still come are answered");
    // The second signal does not wait for anything.
    api.terminate();
    assert!(api.ends().0.success());
    split.database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_whose_place_for_probes_is_taken_name_the_setting() {
    let split = Split::new().await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let workers = split.workers(&[format!("server.probes_listen={taken}")]);
    let (status, said) = workers.ends();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("is taken by another program"), "{said}");
    assert!(said.contains("`server.probes_listen`") && !said.contains("--listen"), "{said}");
    split.database.drop().await;
}
