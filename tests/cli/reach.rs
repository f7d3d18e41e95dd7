//! Where an instance is reached, that it left nothing behind, and how a manifest is begun.

use std::fs;
use std::net::TcpListener;

use node_protocol::Key;
use serde_json::{Value, json};

use super::instances::{Town, answer};
use super::{Shell, told};

/// A command's whole answer, whatever the port, and whether or not the node told of its health already.
async fn opened(shell: &Shell, port: u16, more: &[&str]) -> String {
    let words: Vec<&str> = ["open", "hello"].iter().chain(more).copied().collect();
    told(&shell.ask(&words).await).replace(&port.to_string(), "PORT").replace("healthy", "unknown")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_is_opened_where_it_is_reached() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let free = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free().local_addr().unwrap().port();
    answer(&operator.ask(&["up", "hello", "--port", &port.to_string(), "-o", "json"]).await);
    // The simulated node opens no port, so nothing answers here and a tunnel leads there.
    insta::assert_snapshot!("open_table", opened(&operator, port, &[]).await);
    insta::assert_snapshot!("open_json", opened(&operator, port, &["-o", "json"]).await);
    let listening = TcpListener::bind(("127.0.0.1", port)).expect("it is free still");
    let here = answer(&operator.ask(&["open", "hello", "--print", "-o", "json"]).await);
    assert_eq!(here["reached_here"], true);
    // The same platform by an address that others could have: what listens here may be anybody's.
    let mut elsewhere = town.shell("operator");
    elsewhere.set("GPUAAS_BASE_URL", town.url().replace("127.0.0.1", "0.0.0.0"));
    let there = answer(&elsewhere.ask(&["open", "hello", "--print", "-o", "json"]).await);
    assert_eq!(there["reached_here"], false);
    let said = elsewhere.types(&["open", "hello"], "").await;
    assert_eq!(said.code, Some(5), "{said:?}");
    assert!(said.stdout.contains("something else listens at"), "{said:?}");
    drop(listening);
    insta::assert_snapshot!("open_no_endpoint", opened(&operator, port, &["--endpoint", "ssh"]).await);
    assert_eq!(operator.ask(&["down", "hello"]).await.code, Some(0));
    insta::assert_snapshot!("open_gone", opened(&operator, port, &[]).await);
    insta::assert_snapshot!("open_gone_json", opened(&operator, port, &["-o", "json"]).await);
    town.end().await;
}

/// The same receipt, differing in one field.
fn with(receipt: &Value, field: &str, value: &str) -> String {
    let mut changed = receipt.clone();
    changed[field] = json!(value);
    changed.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_checked_by_anybody_and_a_forged_one_proves_nothing() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    insta::assert_snapshot!("receipt_early", told(&operator.ask(&["receipt", "hello"]).await));
    assert_eq!(operator.ask(&["down", "hello"]).await.code, Some(0));
    let said = operator.ask(&["receipt", "hello"]).await;
    assert!(said.stdout.contains("remains") && said.stdout.contains("simulated"), "{said:?}");
    let receipt = answer(&operator.ask(&["receipt", "hello", "-o", "json"]).await);
    town.end().await;

    // From here on there is no platform.
    let away = Shell::new();
    let file = away.path("receipt.json");
    let verify = |content: String, more: &[&str]| {
        fs::write(&file, content).unwrap();
        let mut words = vec!["receipt", "verify", file.to_str().unwrap()];
        words.extend(more);
        away.run(&words)
    };
    let key_id = receipt["key_id"].as_str().unwrap();
    let loose = verify(receipt.to_string(), &[]);
    assert_eq!(loose.code, Some(0), "{loose:?}");
    assert!(loose.stderr.contains("--key-id"), "nobody said whose key it must be: {loose:?}");
    let checked = answer(&verify(receipt.to_string(), &["--key-id", key_id, "-o", "json"]));
    assert_eq!((&checked["valid"], &checked["pinned"]), (&json!(true), &json!(true)));
    let pem = away.path("key.pem");
    fs::write(&pem, receipt["public_key"].as_str().unwrap()).unwrap();
    assert_eq!(verify(receipt.to_string(), &["--key", pem.to_str().unwrap()]).code, Some(0));

    let other = Key::generate().public();
    for (content, why) in [
        (with(&receipt, "payload", "e30"), "another text"),
        (with(&receipt, "signature", "AAAA"), "another signature"),
        (with(&receipt, "public_key", &other.to_pem().unwrap()), "a key under another's name"),
    ] {
        assert_eq!(verify(content, &[]).code, Some(6), "{why}");
    }
    let stranger = verify(receipt.to_string(), &["--key-id", &other.id(), "-o", "json"]);
    assert_eq!(stranger.code, Some(6), "{stranger:?}");
    assert!(stranger.stderr.contains("another key"), "{stranger:?}");
    assert_eq!(verify("not json".to_owned(), &[]).code, Some(1));
}

#[test]
fn a_manifest_is_begun_and_is_valid_as_it_is() {
    let shell = Shell::new();
    let file = shell.path("manifest.yaml");
    let file = file.to_str().unwrap();
    let begun = shell.run(&["init", file, "--slug", "my-app", "--port", "9000", "--no-input", "-o", "json"]);
    assert_eq!(answer(&begun)["app_slug"], "my-app");
    let valid = shell.run(&["validate", file, "-o", "json"]);
    let report = &answer(&valid)[0];
    assert_eq!((&report["valid"], &report["warnings"]), (&json!(true), &json!([])), "{report:#}");
    let again = shell.run(&["init", file, "--slug", "other", "--no-input"]);
    assert_eq!(again.code, Some(5), "{again:?}");
    assert!(fs::read_to_string(file).unwrap().contains("slug: my-app"), "it stays as it was");
    assert_eq!(shell.run(&["init", file, "--slug", "other", "--force"]).code, Some(0));
    assert_eq!(shell.run(&["validate", file]).code, Some(0));
    let bad = shell.run(&["init", file, "--slug", "No Slug", "--force"]);
    assert_eq!((bad.code, bad.stderr.contains("/app/slug")), (Some(1), true), "{bad:?}");
}
