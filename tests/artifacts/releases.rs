//! Releases of the platform: named once, for good, and to be had by everybody who is signed in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use super::yard::Yard;
use crate::http::{admin, project};
use crate::support::cluster::Folder;
use crate::support::image::{Image, digest};
use crate::support::realm::EXAMPLE;

const RELEASES: &str = "/api/v1/platform/releases";

/// A blob that was published and verified like any other.
async fn published(yard: &Yard, name: &str, bytes: &'static [u8]) -> Value {
    let intent = yard.intent(json!({ "artifact_name": name, "artifact_kind": "blob" })).await;
    let request = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    let sent = yard.http.bearing("").answer_to(request.body(Body::from(bytes)).unwrap()).await;
    assert_eq!(sent.status, 200);
    let wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "artifact_name": name, "artifact_kind": "blob", "digest": digest(bytes),
    });
    yard.http.acting("publisher").post(&project("/app-artifacts"), wanted).await.with(201)
}

async fn verified(yard: &Yard, artifact: &Value) -> Value {
    yard.act("publisher", artifact, "verify", json!({})).await.with(200)
}

async fn bytes(yard: &Yard, path: &str) -> Vec<u8> {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    let answer = yard.http.acting("newcomer").open(request).await;
    assert_eq!(answer.status(), 200);
    axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_names_what_was_verified_and_everybody_gets_the_very_bytes() {
    let yard = Yard::new().await;
    let cli = published(&yard, "cli", b"a program").await;
    let image = yard.publish(&Image::saying("the platform")).await;
    let release = |name: &str, artifact: &Value| json!({ "name": name, "artifact_id": artifact["id"] });
    let wanted = json!({ "version": "1.2.0", "artifacts": [release("gpuaas-linux", &cli), release("server", &image)] });
    let early = yard.http.post(&admin("/platform/releases"), wanted.clone()).await.with(422);
    assert_eq!(early["code"], "artifact_untrusted", "nothing was verified yet");
    verified(&yard, &cli).await;
    verified(&yard, &image).await;
    let made = yard.http.post(&admin("/platform/releases"), wanted.clone()).await.with(201);
    assert_eq!(
        yard.http.post(&admin("/platform/releases"), wanted).await.with(409)["code"],
        "already_exists"
    );

    let everybody = yard.http.acting("newcomer");
    assert_eq!(everybody.get(RELEASES).await.with(200)["items"], json!([made]));
    assert_eq!(everybody.get(&format!("{RELEASES}/1.2.0")).await.with(200), made);
    let path = made["artifacts"][0]["download_path"].as_str().unwrap();
    assert_eq!(bytes(&yard, path).await, b"a program");
    let sums = bytes(&yard, &path.replace("gpuaas-linux", "SHA256SUMS")).await;
    let line = format!("{}  gpuaas-linux\n", digest(b"a program").hex());
    assert_eq!(String::from_utf8(sums).unwrap(), line, "images are pulled, not downloaded");

    let pulls = format!("{RELEASES}/1.2.0/artifacts/server/pull-intents");
    let intent = everybody.post(&pulls, json!({})).await.with(201);
    let reader = yard.speak(image["repository"].as_str().unwrap(), &yard.unwrap(&intent).await);
    assert_eq!(
        reader.manifest(image["digest"].as_str().unwrap()).await.unwrap().digest.as_str(),
        image["digest"]
    );
    assert_eq!(everybody.get(&format!("{RELEASES}/9.9.9")).await.with(404)["code"], "release_not_found");
    let refused = yard.act("project-admin", &cli, "retire", json!({ "when": "now" })).await.with(409);
    assert_eq!(refused["details"]["references"]["releases"], json!(["1.2.0"]));

    let judged = async |trust: &'static str| {
        let judge = "update app_artifacts set trust_state = $3 where id in ($1::text::uuid, $2::text::uuid)";
        let judge = sqlx::query(judge).bind(cli["id"].as_str().unwrap()).bind(image["id"].as_str().unwrap());
        judge.bind(trust).execute(&yard.story.pool).await.unwrap();
    };
    judged("failed_verification").await;
    let refused = everybody.post(&pulls, json!({})).await.with(422);
    assert_eq!(refused["details"]["state"], "failed_verification", "nor is the image's");
    let refused = everybody.get(path).await.with(422);
    assert_eq!(refused["details"]["state"], "failed_verification", "its bytes are not what was released");
    judged("verified").await;
    yard.act("project-admin", &cli, "revoke", json!({})).await.with(200);
    assert_eq!(everybody.get(path).await.with(422)["code"], "artifact_untrusted");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_makes_no_sense_is_refused_with_every_reason() {
    let yard = Yard::new().await;
    let cli = published(&yard, "cli", b"a program").await;
    verified(&yard, &cli).await;
    let unknown = "01970000-0000-7000-8000-00000000000b";
    let wanted = json!({ "version": "1.2.0", "artifacts": [
        { "name": "cli", "artifact_id": cli["id"] }, { "name": "cli", "artifact_id": unknown },
    ] });
    let refused = yard.http.post(&admin("/platform/releases"), wanted).await.with(400);
    let pointers: Vec<&str> = refused["details"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/artifacts/1/name", "/artifacts/1/artifact_id"]);
    yard.end().await;
}

/// `./dev release`, with the command that these stories test.
fn released(yard: &Yard, folder: &Path, arguments: &[&str]) -> Result<(), String> {
    fs::create_dir_all(folder.join("bin")).unwrap();
    let _ = symlink(env!("CARGO_BIN_EXE_gpuaas"), folder.join("bin/gpuaas"));
    let path = format!(
        "{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        folder.join("bin").display()
    );
    let said = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/dev"))
        .arg("release")
        .args(arguments)
        .env("PATH", path)
        .env("HOME", folder)
        .env("CARGO_TARGET_DIR", folder)
        .env("GPUAAS_BASE_URL", format!("http://{}", yard.address))
        .env("GPUAAS_TOKEN", yard.http.token())
        .env("GPUAAS_PROJECT", EXAMPLE.to_string())
        .output()
        .expect("bash runs");
    if said.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&said.stderr).into_owned()) }
}

fn sums_are_right(folder: &Path) -> bool {
    let mut command = Command::new("sha256sum");
    let said = command.args(["--check", "--strict", "--quiet", "SHA256SUMS"]).current_dir(folder).status();
    said.expect("sha256sum runs").success()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_that_releases_the_command_publishes_what_sha256sum_finds_right() {
    let (yard, folder) = (Yard::new().await, Folder::new());
    let (one, two) = (folder.0.join("one"), folder.0.join("two"));
    fs::write(&one, "a program").unwrap();
    fs::write(&two, "the same for others").unwrap();
    let programs = [
        "1.2.0".to_owned(),
        format!("gpuaas-linux-x86_64={}", one.display()),
        format!("gpuaas-linux-aarch64={}", two.display()),
    ];
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    tokio::task::block_in_place(|| released(&yard, &folder.0, &programs)).unwrap();
    let again = tokio::task::block_in_place(|| released(&yard, &folder.0, &programs)).unwrap_err();
    assert!(again.contains("was refused"), "a release is for good: {again}");

    let fetched = folder.0.join("fetched");
    fs::create_dir(&fetched).unwrap();
    for name in ["gpuaas-linux-x86_64", "gpuaas-linux-aarch64", "SHA256SUMS"] {
        let path = format!("{RELEASES}/1.2.0/artifacts/{name}/download");
        fs::write(fetched.join(name), bytes(&yard, &path).await).unwrap();
    }
    assert!(sums_are_right(&fetched));
    assert_eq!(fs::read(fetched.join("gpuaas-linux-x86_64")).unwrap(), b"a program");
    fs::write(fetched.join("gpuaas-linux-aarch64"), "other bytes").unwrap();
    assert!(!sums_are_right(&fetched));
    yard.end().await;
}
