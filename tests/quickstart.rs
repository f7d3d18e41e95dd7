//! `docs/quickstart-curl.md`, executed: its commands as they are written there, by a real shell, against the built binary with a
//! real container engine and registry, and their answers held against what the page expects. Between them, what it only
//! promises. And the same of the quickstart that the product began with, word for word.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clients::oci_layout::{FileEntry, Image, pack};
use serde_json::{Value, json};

use crate::support::cluster::Folder;
use crate::support::docker::Engine;
use crate::support::process::Dev;

const PAGE: &str = include_str!("../docs/quickstart-curl.md");
/// Only what stands in `<brackets>` and what it has its reader export is filled in.
const ORIGINAL: &str = include_str!("quickstart/original.txt");

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstart_works_as_it_is_written() {
    let engine = Engine::start().await;
    let folder = Folder::new();
    let first = image(&folder.0.join("first"), "first", true);
    let dev = Dev::start(
        &folder.0.join("data"),
        &["--docker-host", &engine.host(), "--hello-image", first.to_str().unwrap()],
    );
    assert_eq!(dev.ready["driver"], "docker");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "hello's own tests left nothing");
    let mut shell = Shell::new(&folder.0, &dev.ready);
    image(&shell.folder.join("hello-image"), "second", true);

    shell.step("Quickstart");
    for step in ["Step 1", "Step 2", "Step 3", "Step 4", "Step 4a", "Step 5", "Step 6", "Step 6a", "Step 6b"]
    {
        shell.step(step);
    }
    let good = shell.variables["ARTIFACT_ID"].clone();
    shell.until_running();
    let url = shell.answer["endpoints"][0]["url"].as_str().unwrap().to_owned();
    assert!(page(&url).unwrap().contains("first"), "the image that the version was staged with");

    // An image that cannot start, published as the page says.
    image(&shell.folder.join("hello-image"), "broken", false);
    shell.step("Step 6a");
    let watch = Watch::over(&url);
    let [upgrade, rollback, decommission, record] = <[Block; 4]>::try_from(blocks("Step 8")).ok().unwrap();
    let failed = shell.run(&upgrade.commands);
    assert_eq!(
        (&failed["status"], &failed["workflow"]["status"]),
        (&json!("running"), &json!("compensated"))
    );
    assert_eq!(failed["last_operation"]["status"], "failed", "{failed:#}");
    assert_eq!(watch.missed(), 0, "the old one never stopped answering");

    shell.variables.insert("ARTIFACT_ID".to_owned(), good);
    shell.does(&upgrade);
    assert!(page(&shell.url()).unwrap().contains("second"));
    shell.does(&rollback);
    assert!(page(&shell.url()).unwrap().contains("first"));

    let ended = shell.does(&decommission);
    let again = shell.does(&decommission);
    assert_eq!(again["workflow"]["id"], ended["workflow"]["id"], "twice is one teardown");
    shell.does(&record);
    shell.step("Step 9");
    let records = shell.answer["items"].as_array().expect("records").clone();
    for field in ["org_id", "project_id", "app_instance_id", "usage_source", "operating_mode"] {
        assert!(records.iter().all(|record| record[field].is_string()), "{field}: {:#}", shell.answer);
    }
    shell.step("Step 10");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of ours is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_quickstart_that_the_product_began_with_works_word_for_word() {
    let engine = Engine::start().await;
    let folder = Folder::new();
    let first = image(&folder.0.join("first"), "first", true);
    let dev = Dev::start(
        &folder.0.join("data"),
        &["--docker-host", &engine.host(), "--hello-image", first.to_str().unwrap()],
    );
    let mut shell = Shell::new(&folder.0, &dev.ready);
    image(&shell.folder.join("hello-image"), "second", true);
    shell.step("Quickstart");
    for once in ["REQUEST_ID", "IDEMPOTENCY_KEY"] {
        shell.variables.insert(once.to_owned(), uuid::Uuid::now_v7().to_string());
    }
    // It leaves signing in, pushing and uploading to its reader, who does as our own page says.
    shell.step("Step 1");
    shell.original("2");
    shell.keep(&[
        ("SERVICE_ACCOUNT_ID", "/id"),
        ("SERVICE_ACCOUNT_KEY_ID", "/key_id"),
        ("SERVICE_ACCOUNT_PRIVATE_KEY_PEM", "/private_key_pem"),
    ]);
    shell.original("3");
    shell.keep(&[("SA_TOKEN", "/access_token")]);
    for step in ["4", "4a", "5", "6"] {
        shell.original(step);
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
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of ours is left");
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

/// An image from nothing but a static busybox: it serves a page with these words, or cannot start at all.
pub fn image(folder: &Path, words: &str, starts: bool) -> PathBuf {
    let file = |path: &str, bytes: Vec<u8>| FileEntry {
        path: path.to_owned(),
        executable: path.starts_with("bin"),
        bytes,
    };
    let program = if starts { "/bin/busybox" } else { "/bin/nothing" };
    let image = Image {
        files: vec![
            file("bin/busybox", fs::read("/bin/busybox").expect("busybox-static is installed")),
            file("www/healthz", b"ok".to_vec()),
            file("www/index.html", format!("<h1>{words}</h1>").into_bytes()),
        ],
        architecture: if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }.to_owned(),
        entrypoint: [program, "httpd", "-f", "-p", "8080", "-h", "/www"].map(str::to_owned).to_vec(),
        ports: vec![8080],
        user: "65532:65532".to_owned(),
        ..Image::default()
    };
    pack(&image, folder).expect("an image");
    folder.to_owned()
}

pub fn page(url: &str) -> Option<String> {
    let said = Command::new("curl").args(["-s", "-f", "-m", "5", url]).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Asks an address again and again, and counts when nobody answers.
struct Watch {
    ends: Arc<AtomicBool>,
    asking: JoinHandle<u32>,
}

impl Watch {
    fn over(url: &str) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let (url, over) = (url.to_owned(), Arc::clone(&ends));
        let asking = thread::spawn(move || {
            let mut missed = 0;
            while !over.load(Ordering::SeqCst) {
                missed += u32::from(page(&url).is_none());
            }
            missed
        });
        Watch { ends, asking }
    }

    fn missed(self) -> u32 {
        self.ends.store(true, Ordering::SeqCst);
        self.asking.join().unwrap()
    }
}

/// Commands, and the answer that the page expects of them, in pieces.
struct Block {
    commands: String,
    expected: Vec<Value>,
}

/// The commands of the section that begins with this heading, in order.
fn blocks(step: &str) -> Vec<Block> {
    let section = |part: &&str| {
        let heading = part.lines().next().unwrap_or_default();
        heading == step
            || heading.starts_with(&format!("{step}:"))
            || heading.starts_with(&format!("{step} "))
    };
    let parts = PAGE.split("\n## ").flat_map(|part| part.strip_prefix("# ").or(Some(part)));
    let found = parts.into_iter().find(section).unwrap_or_else(|| panic!("the page has no {step}"));
    let block = |rest: &str| {
        let (commands, text) = rest.split_once("```").unwrap();
        Block { commands: commands.to_owned(), expected: expected(text) }
    };
    found.split("```bash\n").skip(1).map(block).collect()
}

/// Every piece of JSON in the sentence that says what to expect.
fn expected(text: &str) -> Vec<Value> {
    let Some((_, text)) = text.split_once("Expected") else { return Vec::new() };
    let text = text.split(". ").next().unwrap_or_default().replace('\n', " ");
    let pieces = text.split('`').skip(1).step_by(2).filter(|piece| piece.starts_with(['{', '"']));
    pieces
        .map(|piece| {
            let whole = if piece.starts_with('{') { piece.to_owned() } else { format!("{{{piece}}}") };
            let plain = whole.replace(", …}", "}").replace(", …]", "]").replace("{…}", "{}");
            serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{plain}: {error}"))
        })
        .collect()
}

/// Whether an answer has everything that is expected of it: `…` stands for anything, and so do ports.
fn has(answer: &Value, expected: &Value) -> bool {
    match (answer, expected) {
        (Value::Object(answer), Value::Object(expected)) => {
            expected.iter().all(|(name, field)| answer.get(name).is_some_and(|answer| has(answer, field)))
        }
        (Value::Array(answer), Value::Array(expected)) => {
            expected.iter().all(|wanted| answer.iter().any(|one| has(one, wanted)))
        }
        (Value::String(answer), Value::String(expected)) => {
            let (answer, expected) = (without_port(answer), without_port(expected));
            match expected.split_once('…') {
                Some((before, after)) => answer.starts_with(before) && answer.ends_with(after),
                None => answer == expected,
            }
        }
        _ => answer == expected,
    }
}

fn without_port(text: &str) -> String {
    match text.split_once("127.0.0.1:") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}127.0.0.1:{rest}")
        }
        None => text.to_owned(),
    }
}

#[test]
fn an_answer_without_what_is_expected_is_found_out() {
    let page = "Expected: `{\"id\": \"01…\", \"items\": [{\"kind\": \"step\", …}], …}` and `\"at\": \"127.0.0.1:5000\"`. More";
    let expected = expected(page);
    let holds = |answer: Value| expected.iter().all(|piece| has(&answer, piece));
    assert!(holds(
        json!({ "id": "0197", "items": [{ "kind": "run" }, { "kind": "step" }], "at": "127.0.0.1:1" })
    ));
    assert!(!holds(json!({ "id": "0297", "items": [{ "kind": "step" }], "at": "127.0.0.1:1" })));
    assert!(!holds(json!({ "id": "0197", "items": [], "at": "127.0.0.1:1" })));
    assert!(!holds(json!({ "id": "0197", "items": [{ "kind": "step" }] })));
}

/// A person at a terminal: variables that stay, and the last answer to take fields from.
struct Shell {
    folder: PathBuf,
    variables: BTreeMap<String, String>,
    answer: Value,
}

impl Shell {
    fn new(folder: &Path, ready: &Value) -> Shell {
        let folder = folder.join("terminal");
        fs::create_dir_all(&folder).unwrap();
        Shell { folder, variables: BTreeMap::new(), answer: ready.clone() }
    }

    /// Every command of a step; each must do what it is there for.
    fn step(&mut self, step: &str) {
        for block in blocks(step) {
            self.does(&block);
        }
    }

    /// The same of the original.
    fn original(&mut self, step: &str) {
        for command in commands(step) {
            self.run(&command);
        }
    }

    /// Exports fields of the last answer.
    fn keep(&mut self, variables: &[(&str, &str)]) {
        for (name, pointer) in variables {
            let value = self.answer.pointer(pointer).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("no {pointer} in {:#}", self.answer));
            self.variables.insert((*name).to_owned(), value.to_owned());
        }
    }

    /// Asks again and again.
    fn until(&mut self, command: &str, is: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is(&self.run(command)) {
            assert!(self.answer["status"] != "failed" && Instant::now() < deadline, "{:#}", self.answer);
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// As the page says it will.
    fn does(&mut self, block: &Block) -> Value {
        let answer = self.run(&block.commands);
        for piece in &block.expected {
            assert!(has(&answer, piece), "{}\nexpected {piece:#}\nin {answer:#}", block.commands);
        }
        answer
    }

    fn run(&mut self, block: &str) -> Value {
        let kept = self.folder.join("variables");
        let script = format!("set -euo pipefail\n{}\nenv -0 > {}", self.filled(block), kept.display());
        let said = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&self.folder)
            .envs(&self.variables)
            .output()
            .expect("bash runs");
        let complaint = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{block}\n{complaint}");
        let exported = fs::read_to_string(kept).unwrap();
        let pairs = exported.split('\0').filter_map(|pair| pair.split_once('='));
        self.variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if let Ok(answer) = serde_json::from_slice::<Value>(&said.stdout) {
            assert!(answer.get("code").is_none_or(Value::is_null), "{block}\n{answer:#}");
            self.answer = answer;
        }
        self.answer.clone()
    }

    /// `<field>` is a field of the last answer; dots lead into it.
    fn filled(&self, block: &str) -> String {
        let mut filled = String::new();
        let mut rest = block;
        while let Some((before, after)) = rest.split_once("=\"<") {
            let (inside, more) = after.split_once('"').expect("a closing quote");
            let words = format!("<{inside}");
            let values = words.split('<').skip(1).map(|part| {
                let (name, tail) = part.split_once('>').expect("a closing bracket");
                let pointer = format!("/{}", name.replace('.', "/"));
                let value = self.answer.pointer(&pointer).and_then(Value::as_str);
                format!("{}{tail}", value.unwrap_or_else(|| panic!("no {name} in {:#}", self.answer)))
            });
            filled.push_str(&format!("{before}=\"{}\"", values.collect::<String>()));
            rest = more;
        }
        filled + rest
    }

    /// Step 7 again and again, as it says; leaves the endpoints as the last answer.
    fn until_running(&mut self) {
        let [list, instance, access] = <[Block; 3]>::try_from(blocks("Step 7")).ok().unwrap();
        self.run(&list.commands);
        self.until(&instance.commands, |now| now["status"] == "running");
        self.does(&instance);
        self.does(&access);
    }

    /// Where the instance is reached now.
    fn url(&mut self) -> String {
        let access = blocks("Step 7").pop().unwrap();
        self.run(&access.commands)["endpoints"][0]["url"].as_str().unwrap().to_owned()
    }
}
