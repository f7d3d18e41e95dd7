//! `gpuaas publish` as a pipeline runs it, against a real registry: everything in one command, and nothing twice.

use axum::body::Body;
use axum::http::{Method, Request};
use clients::blobs::Blobs;
use serde_json::{Value, json};

use super::Shell;
use crate::artifacts::signer;
use crate::artifacts::yard::Yard;
use crate::http::project;
use crate::support::bucket::{Bucket, SECRET};
use crate::support::docker::Engine;
use crate::support::image::{Image, digest};
use crate::support::process::Said;

fn at(yard: &Yard) -> Shell {
    Shell::at(yard.address, yard.http.acting("publisher").token())
}

fn answer(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pushed_signed_registered_and_verified_by_one_command() {
    let yard = Yard::new().await;
    yard.policy("artifact.signature_required", json!(true)).await;
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(1) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    let (shell, image) = (at(&yard), Image::saying("hello"));
    let layout = image.layout().display().to_string();
    let unsigned = shell.ask(&["publish", "hello", "1.0.0", "--image", &layout]).await;
    assert_eq!(unsigned.code, Some(6), "{unsigned:?}");
    assert!(unsigned.stderr.contains("not trusted: no signature"), "{unsigned:?}");

    let pem = shell.path("key.pem");
    std::fs::write(&pem, signer::private_key_pem(1)).unwrap();
    let command =
        ["publish", "hello", "1.0.0", "--image", &layout, "--key", pem.to_str().unwrap(), "-o", "json"];
    let signed = shell.ask(&command).await;
    assert_eq!(signed.code, Some(0), "{signed:?}");
    let artifact = answer(&signed);
    assert_eq!((&artifact["digest"], &artifact["trust_state"]), (&json!(image.digest), &json!("verified")));
    let before = yard.rows().await;
    let again = shell.ask(&command).await;
    assert_eq!((again.code, answer(&again)), (Some(0), artifact), "{again:?}");
    assert_eq!(yard.rows().await, before, "the second time changes nothing");
    let shown = shell.ask(&["publish", "hello", "1.0.0", "--image", &layout]).await;
    let line = format!("gpuaas/apps/example/hello@{}", image.digest);
    assert!(shown.stdout.contains(&line), "{shown:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn provenance_that_is_required_comes_with_the_same_command() {
    let yard = Yard::new().await;
    for required in ["artifact.signature_required", "artifact.provenance_required"] {
        yard.policy(required, json!(true)).await;
    }
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(1) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    let (shell, image) = (at(&yard), Image::saying("hello"));
    let (layout, other) = (image.layout().display().to_string(), digest(b"other bytes"));
    let slsa = "https://slsa.dev/provenance/v1";
    let predicate = json!({ "runDetails": { "builder": { "id": "https://ci.example/builder" } } });
    let kept = |name: &str, bytes: &[u8]| {
        std::fs::write(shell.path(name), bytes).unwrap();
        shell.path(name).display().to_string()
    };
    let pem = kept("key.pem", signer::private_key_pem(1).as_bytes());
    let statement = signer::statement(&image.digest, slsa, &predicate);
    let plain = kept("statement.json", &statement);
    let publishes = async |more: &[&str]| {
        let command = ["publish", "hello", "1.0.0", "--image", &layout, "-o", "json"];
        shell.ask(&[&command[..], more].concat()).await
    };
    for (wrong, words) in [
        (kept("other", &signer::statement(&other, slsa, &predicate)), "is about something else"),
        (
            kept("sbom", &signer::statement(&image.digest, "https://spdx.dev/Document", &predicate)),
            "is no provenance",
        ),
        (kept("text", b"built at home"), "is neither an in-toto statement nor"),
    ] {
        let refused = publishes(&["--key", &pem, "--provenance", &wrong]).await;
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
    let unsigned = publishes(&["--provenance", &plain]).await;
    assert!(unsigned.code == Some(1) && unsigned.stderr.contains("nobody signed"), "{unsigned:?}");
    assert_eq!(yard.rows().await, 0, "nothing went anywhere");

    let without = publishes(&["--key", &pem]).await;
    assert_eq!(without.code, Some(6), "{without:?}");
    let foreign = kept("foreign", signer::envelope(2, &statement).to_string().as_bytes());
    let foreign = publishes(&["--key", &pem, "--provenance", &foreign]).await;
    assert_eq!(foreign.code, Some(6), "a key that is not the project's: {foreign:?}");
    let signed = publishes(&["--key", &pem, "--provenance", &plain]).await;
    assert_eq!(signed.code, Some(0), "{signed:?}");
    let artifact = answer(&signed);
    assert_eq!(artifact["trust_state"], "verified");
    assert_eq!(artifact["evidence"]["provenance"]["builder_id"], "https://ci.example/builder");
    let again = publishes(&["--key", &pem, "--provenance", &plain]).await;
    assert_eq!((again.code, answer(&again)), (Some(0), artifact), "{again:?}");

    let weights = kept("weights", b"of a blob");
    let of_blob = signer::statement(&digest(b"of a blob"), slsa, &predicate);
    let envelope = kept("envelope", signer::envelope(1, &of_blob).to_string().as_bytes());
    let blob = ["publish", "hello", "1.0.0", "--blob", &weights, "--name", "weights", "-o", "json"];
    let said = shell.ask(&[&blob[..], &["--key", &pem, "--provenance", &envelope]].concat()).await;
    assert_eq!((said.code, &answer(&said)["trust_state"]), (Some(0), &json!("verified")), "{said:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tar_file_and_a_blob_are_published_and_what_is_neither_is_said_to_be() {
    let yard = Yard::new().await;
    let (shell, image) = (at(&yard), Image::saying("packed"));
    let archive = shell.path("image.tar");
    let packed = std::process::Command::new("tar")
        .arg("-cf")
        .arg(&archive)
        .arg("-C")
        .arg(image.layout())
        .arg(".")
        .status();
    assert!(packed.unwrap().success());
    let said =
        shell.ask(&["publish", "hello", "1.0.0", "--image", archive.to_str().unwrap(), "-o", "json"]).await;
    assert_eq!((said.code, &answer(&said)["digest"]), (Some(0), &json!(image.digest)), "{said:?}");

    let weights = shell.path("weights.bin");
    std::fs::write(&weights, vec![7; 3 << 20]).unwrap();
    let command =
        ["publish", "hello", "1.0.0", "--blob", weights.to_str().unwrap(), "--name", "weights", "-o", "json"];
    let said = shell.ask(&command).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(answer(&said)["digest"], json!(digest(&vec![7; 3 << 20])));
    assert!(said.stderr.contains("weights.bin 3.0 MiB sent"), "{said:?}");
    assert_eq!(yard.kept_blobs(), 1);

    let wrong = shell.ask(&["publish", "hello", "1.0.0", "--image", weights.to_str().unwrap()]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let nobodys = shell.ask(&["publish", "unheard-of", "1.0.0", "--blob", weights.to_str().unwrap()]).await;
    assert_eq!(nobodys.code, Some(4), "{nobodys:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_is_signed_with_the_command_that_publishes_it_or_with_the_next() {
    let yard = Yard::new().await;
    yard.policy("artifact.signature_required", json!(true)).await;
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(1) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    let shell = at(&yard);
    let (weights, pem) = (shell.path("weights.bin"), shell.path("key.pem"));
    std::fs::write(&weights, b"all the weights").unwrap();
    std::fs::write(&pem, signer::private_key_pem(1)).unwrap();
    let plain =
        ["publish", "hello", "1.0.0", "--blob", weights.to_str().unwrap(), "--name", "weights", "-o", "json"];
    let unsigned = shell.ask(&plain).await;
    assert_eq!(unsigned.code, Some(6), "{unsigned:?}");
    assert!(unsigned.stderr.contains("not trusted: no signature"), "{unsigned:?}");
    let signed = [&plain[..], &["--key", pem.to_str().unwrap()]].concat();
    let said = shell.ask(&signed).await;
    assert_eq!((said.code, &answer(&said)["trust_state"]), (Some(0), &json!("verified")), "{said:?}");
    std::fs::write(&weights, b"other weights").unwrap();
    let said = shell.ask(&signed).await;
    assert_eq!((said.code, &answer(&said)["trust_state"]), (Some(0), &json!("verified")), "{said:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_for_several_architectures_is_signed_as_a_whole_and_in_every_part() {
    let yard = Yard::new().await;
    yard.policy("artifact.signature_required", json!(true)).await;
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(1) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    let (shell, one, two) = (at(&yard), Image::saying("amd64"), Image::saying("arm64"));
    let layout = one.beside(&two);
    let pem = shell.path("key.pem");
    std::fs::write(&pem, signer::private_key_pem(1)).unwrap();
    let layout = layout.display().to_string();
    let command =
        ["publish", "hello", "1.0.0", "--image", &layout, "--key", pem.to_str().unwrap(), "-o", "json"];
    let said = shell.ask(&command).await;
    assert_eq!((said.code, &answer(&said)["trust_state"]), (Some(0), &json!("verified")), "{said:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_whose_upload_broke_off_goes_on_with_the_next_command() {
    let yard = Yard::new().await;
    let shell = at(&yard);
    let (weights, size) = (shell.path("weights.bin"), 3 << 20);
    std::fs::write(&weights, vec![7; size]).unwrap();
    let wanted = json!({
        "artifact_name": "weights", "artifact_kind": "blob", "expected_digest": digest(&vec![7; size]),
    });
    // As a command leaves it whose connection broke.
    let intent = yard.intent(wanted).await;
    let part = Request::builder().method(Method::PUT).uri(intent["upload_path"].as_str().unwrap());
    let part = part.header("content-range", format!("bytes 0-{}/{size}", (2 << 20) - 1));
    let part = part.body(Body::from(vec![7; 2 << 20])).unwrap();
    yard.http.bearing("").answer_to(part).await.with(200);
    let command =
        ["publish", "hello", "1.0.0", "--blob", weights.to_str().unwrap(), "--name", "weights", "-o", "json"];
    let said = shell.ask(&command).await;
    assert_eq!((said.code, &answer(&said)["digest"]), (Some(0), &json!(digest(&vec![7; size]))), "{said:?}");
    assert!(said.stderr.contains("1.0 MiB sent"), "only what was missing: {said:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_the_engine_is_published_by_its_name() {
    let engine = Engine::start().await;
    let yard = Yard::new().await;
    engine.docker(&["tag", &engine.stage.digest, "ours:1"]).unwrap();
    let mut shell = at(&yard);
    shell.set("DOCKER_HOST", engine.host());
    let said = shell.ask(&["publish", "hello", "1.0.0", "--image", "docker:ours:1", "-o", "json"]).await;
    assert_eq!((said.code, &answer(&said)["trust_state"]), (Some(0), &json!("verified")), "{said:?}");
    let unknown = shell.ask(&["publish", "hello", "1.0.0", "--image", "docker:nobodys:1"]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    yard.end().await;
}

/// Asked for no more than there is, so that the platform's own limit is not what decides.
async fn permitted(yard: &Yard) -> Vec<i64> {
    let asked = "select max_bytes from publish_intents where max_bytes is not null order by id";
    sqlx::query_scalar(asked).fetch_all(&yard.story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_goes_to_a_bucket_by_one_command_and_is_not_sent_twice() {
    let bucket = Bucket::start().await;
    let yard = Yard::keeping_in(Blobs::S3(bucket.connect(SECRET))).await;
    let shell = at(&yard);
    let (weights, bytes) = (shell.path("weights.bin"), vec![7; 3 << 20]);
    std::fs::write(&weights, &bytes).unwrap();
    let command =
        ["publish", "hello", "1.0.0", "--blob", weights.to_str().unwrap(), "--name", "weights", "-o", "json"];
    // As a command leaves it that ended between upload and registration.
    let wanted =
        json!({ "artifact_name": "weights", "artifact_kind": "blob", "expected_digest": digest(&bytes) });
    let intent = yard.intent(wanted).await;
    let mut upload = reqwest::Client::new().put(intent["upload_path"].as_str().unwrap()).body(bytes.clone());
    for (name, value) in intent["upload_headers"].as_object().unwrap() {
        upload = upload.header(name, value.as_str().unwrap());
    }
    assert!(upload.send().await.unwrap().status().is_success());
    let said = shell.ask(&command).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("all of it is there already"), "{said:?}");
    let artifact = answer(&said);
    assert_eq!((&artifact["digest"], &artifact["trust_state"]), (&json!(digest(&bytes)), &json!("verified")));
    assert_eq!(permitted(&yard).await, [3 << 20]);

    std::fs::write(&weights, b"other weights").unwrap();
    let said = shell.ask(&command).await;
    assert_eq!((said.code, &answer(&said)["size_bytes"]), (Some(0), &json!(13)), "{said:?}");
    assert!(said.stderr.contains("weights.bin 13 B sent"), "{said:?}");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_without_room_refuses_and_nothing_is_registered() {
    let bucket = Bucket::full().await;
    let yard = Yard::keeping_in(Blobs::S3(bucket.connect(SECRET))).await;
    let shell = at(&yard);
    let weights = shell.path("weights.bin");
    std::fs::write(&weights, vec![7; 3 << 20]).unwrap();
    let command = ["publish", "hello", "1.0.0", "--blob", weights.to_str().unwrap(), "--name", "weights"];
    let said = shell.ask(&command).await;
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("the artifact store refused the upload: 500"), "{said:?}");
    let listed = yard.http.get(&project("/app-artifacts")).await.with(200);
    assert_eq!(listed["items"], json!([]));
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_without_room_refuses_and_takes_the_image_once_there_is_some() {
    let yard = Yard::new().await;
    let (shell, image) = (at(&yard), Image::weighing(3 << 20));
    let layout = image.layout().display().to_string();
    let command = ["publish", "hello", "1.0.0", "--image", &layout, "-o", "json"];
    yard.registry.squeeze(1 << 20);
    let said = shell.ask(&command).await;
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("the registry's storage is full"), "{said:?}");
    let listed = yard.http.get(&project("/app-artifacts")).await.with(200);
    assert_eq!(listed["items"], json!([]));
    yard.registry.make_room();
    let said = shell.ask(&command).await;
    assert_eq!((said.code, &answer(&said)["trust_state"]), (Some(0), &json!("verified")), "{said:?}");
    yard.end().await;
}
