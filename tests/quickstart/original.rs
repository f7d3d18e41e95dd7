//! The quickstart that the product began with, executed word for word: only what stands in `<brackets>` and what it has its reader
//! export is filled in.

use std::fs;

use serde_json::json;

use super::Beginning;
use super::blocks::blocks;
use super::shell::Shell;

const ORIGINAL: &str = include_str!("original.txt");

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstart_that_the_product_began_with_works_word_for_word() {
    let Beginning { engine, folder: _folder, dev, mut shell } = Beginning::new().await;
    for once in ["REQUEST_ID", "IDEMPOTENCY_KEY"] {
        shell.variables.insert(once.to_owned(), uuid::Uuid::now_v7().to_string());
    }
    // It leaves signing in, pushing and uploading to its reader, who does as our own page says.
    shell.step("Step 1");
    follow(&mut shell, "2");
    shell.keep(&[
        ("SERVICE_ACCOUNT_ID", "/id"),
        ("SERVICE_ACCOUNT_KEY_ID", "/key_id"),
        ("SERVICE_ACCOUNT_PRIVATE_KEY_PEM", "/private_key_pem"),
    ]);
    follow(&mut shell, "3");
    shell.keep(&[("SA_TOKEN", "/access_token")]);
    for step in ["4", "4a", "5", "6"] {
        follow(&mut shell, step);
    }
    shell.keep(&[("APP_INSTANCE_ID", "/id")]);
    let [intent, register] = commands("6a").try_into().unwrap();
    shell.run(&intent);
    for block in &blocks("Step 6a")[1..5] {
        shell.run(&block.commands);
    }
    let digest = fs::read_to_string(shell.folder.join("pushed-digest")).unwrap();
    let made = shell.run(&register.replace("sha256:<pushed-digest>", digest.trim()));
    assert_eq!((&made["digest"], &made["lifecycle_state"]), (&json!(digest.trim()), &json!("published")));
    let [intent, register] = commands("6b").try_into().unwrap();
    shell.run(&intent);
    shell.run(&blocks("Step 6b")[1].commands);
    let sum = shell.run("printf '\"%s\"' \"$(sha256sum weights | cut -d ' ' -f 1)\"\n");
    let made = shell.run(&register.replace("<uploaded-blob-digest>", sum.as_str().unwrap()));
    assert_eq!(made["artifact_kind"], "blob");

    let [list, instance] = commands("7").try_into().unwrap();
    let own = json!(shell.variables["APP_INSTANCE_ID"]);
    assert!(shell.run(&list)["items"].as_array().unwrap().iter().any(|one| one["id"] == own));
    shell.until(&instance, |now| now["status"] == "running");
    let [upgrade, rollback, decommission] = commands("8").try_into().unwrap();
    for (command, kind) in [(upgrade, "upgrade"), (rollback, "rollback")] {
        assert_eq!(shell.run(&command)["workflow"]["kind"], format!("instance.{kind}"));
        shell.until(&instance, |now| now["status"] == "running" && now["last_operation"]["kind"] == kind);
        assert_eq!(shell.answer["last_operation"]["status"], "succeeded", "{:#}", shell.answer);
    }
    shell.run(&decommission);
    shell.until(&instance, |now| now["status"] == "decommissioned");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of any instance is left");
    dev.stop();
    assert_eq!(engine.reserve(), Vec::<String>::new(), "nothing at all is");
}

/// Every command of a step.
fn follow(shell: &mut Shell, step: &str) {
    for command in commands(step) {
        shell.run(&command);
    }
}

/// The commands of a step of the original: each from its `curl` to the line that ends it.
fn commands(step: &str) -> Vec<String> {
    let section = ORIGINAL.split("Step ").find(|part| part.starts_with(&format!("{step}:")));
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in section.unwrap_or_else(|| panic!("there is no step {step}")).lines() {
        if line.starts_with("curl ") {
            commands.push(String::new());
            goes_on = true;
        }
        if let Some(command) = commands.last_mut().filter(|_| goes_on) {
            command.push_str(line);
            command.push('\n');
            goes_on = line.ends_with('\\') || command.matches('\'').count() % 2 == 1;
        }
    }
    commands
}
