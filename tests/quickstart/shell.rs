//! Whoever follows a page with curl.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::blocks::{Block, blocks, has};

/// A person at a terminal: variables that stay, and the last answer to take fields from.
pub struct Shell {
    pub folder: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub answer: Value,
}

impl Shell {
    pub fn new(folder: &Path, ready: &Value) -> Shell {
        let folder = folder.join("terminal");
        fs::create_dir_all(&folder).unwrap();
        Shell { folder, variables: BTreeMap::new(), answer: ready.clone() }
    }

    /// Every command of a step; each must do what it is there for.
    pub fn step(&mut self, step: &str) {
        for block in blocks(step) {
            self.does(&block);
        }
    }

    /// Exports fields of the last answer.
    pub fn keep(&mut self, variables: &[(&str, &str)]) {
        for (name, pointer) in variables {
            let value = self.answer.pointer(pointer).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("no {pointer} in {:#}", self.answer));
            self.variables.insert((*name).to_owned(), value.to_owned());
        }
    }

    /// Asks again and again.
    pub fn until(&mut self, command: &str, is: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is(&self.run(command)) {
            assert!(self.answer["status"] != "failed" && Instant::now() < deadline, "{:#}", self.answer);
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// As the page says it will.
    pub fn does(&mut self, block: &Block) -> Value {
        let answer = self.run(&block.commands);
        for piece in &block.expected {
            assert!(has(&answer, piece), "{}\nexpected {piece:#}\nin {answer:#}", block.commands);
        }
        answer
    }

    pub fn run(&mut self, block: &str) -> Value {
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
    pub fn until_running(&mut self) {
        let [list, instance, access] = <[Block; 3]>::try_from(blocks("Step 7")).ok().unwrap();
        self.run(&list.commands);
        self.until(&instance.commands, |now| now["status"] == "running");
        self.does(&instance);
        self.does(&access);
    }

    /// Where the instance is reached now.
    pub fn url(&mut self) -> String {
        let access = blocks("Step 7").pop().unwrap();
        self.run(&access.commands)["endpoints"][0]["url"].as_str().unwrap().to_owned()
    }
}
