//! `docs/quickstart-curl.md`, executed: the commands of its steps 1 to 8 as they are written there, by a real shell, against
//! the built binary with a real container engine and registry. Between them, what the page only promises.

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
    let [upgrade, rollback, decommission] = blocks("Step 8").try_into().unwrap();
    let failed = shell.run(&upgrade);
    assert_eq!(
        (&failed["status"], &failed["workflow"]["status"]),
        (&json!("running"), &json!("compensated"))
    );
    assert_eq!(failed["last_operation"]["status"], "failed", "{failed:#}");
    assert_eq!(watch.missed(), 0, "the old one never stopped answering");

    shell.variables.insert("ARTIFACT_ID".to_owned(), good);
    assert_eq!(shell.run(&upgrade)["workflow"]["status"], "succeeded");
    assert!(page(&shell.url()).unwrap().contains("second"));
    assert_eq!(shell.run(&rollback)["workflow"]["status"], "succeeded");
    assert!(page(&shell.url()).unwrap().contains("first"));

    let ended = shell.run(&decommission);
    assert_eq!(ended["status"], "decommissioned");
    let again = shell.run(&decommission);
    assert_eq!(again["workflow"]["id"], ended["workflow"]["id"], "twice is one teardown");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of ours is left");
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

/// The commands of the section that begins with this heading, in order.
fn blocks(step: &str) -> Vec<String> {
    let section = |part: &&str| {
        let heading = part.lines().next().unwrap_or_default();
        heading == step
            || heading.starts_with(&format!("{step}:"))
            || heading.starts_with(&format!("{step} "))
    };
    let parts = PAGE.split("\n## ").flat_map(|part| part.strip_prefix("# ").or(Some(part)));
    let found = parts.into_iter().find(section).unwrap_or_else(|| panic!("the page has no {step}"));
    found.split("```bash\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
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
            self.run(&block);
        }
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
        let [list, instance, access] = blocks("Step 7").try_into().unwrap();
        self.run(&list);
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.run(&instance)["status"] != "running" {
            assert!(self.answer["status"] != "failed" && Instant::now() < deadline, "{:#}", self.answer);
            thread::sleep(Duration::from_millis(100));
        }
        self.run(&access);
    }

    /// Where the instance is reached now.
    fn url(&mut self) -> String {
        let [_, _, access] = <[String; 3]>::try_from(blocks("Step 7")).unwrap();
        self.run(&access)["endpoints"][0]["url"].as_str().unwrap().to_owned()
    }
}
