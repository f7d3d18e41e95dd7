//! `docs/quickstart.md`, executed: its commands as they are written there, by a real shell, against the built binary with a
//! real container engine, and what they print held against what the page shows. `./dev run` itself stands for the binary
//! that is there already: its other stories start it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::image::{image, page};
use crate::support::cluster::Folder;
use crate::support::docker::Engine;
use crate::support::process::Dev;

const PAGE: &str = include_str!("../../docs/quickstart.md");
/// Between what one command and the next one say.
const NEXT: &str = "=== next ===";

#[tokio::test(flavor = "multi_thread")]
async fn five_commands_lead_to_an_app_as_the_page_shows_it() {
    let engine = Engine::start().await;
    let folder = Folder::new();
    let began = Instant::now();
    let hello = image(&folder.0.join("hello"), "Hello from GPUaaS", true);
    let more = ["--docker-host", &engine.host(), "--hello-image", hello.to_str().unwrap()];
    let dev = Dev::start(&folder.0.join("data"), &more);

    let [run, sign_in, up, open, rest] = blocks().try_into().expect("five blocks of commands");
    assert_eq!(run.commands.trim(), "./dev run");
    holds(&run, &dev.banner);
    let asked =
        [&run, &sign_in, &up, &open].map(|block| block.commands.lines().count()).iter().sum::<usize>();
    assert_eq!(asked, 5, "five commands, as the page promises");

    let script = [&sign_in, &up, &open].map(|block| block.commands.clone()).join(&format!("echo '{NEXT}'\n"));
    let said = Shell::new(&folder.0, &dev).on_terminal(&script);
    let said: Vec<&str> = said.split(&format!("{NEXT}\n")).collect();
    for (block, said) in [&sign_in, &up, &open].into_iter().zip(&said) {
        holds(block, said);
    }
    let url = said[2].split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
    assert!(page(url).expect("the app answers").contains("<h1>Hello from GPUaaS</h1>"), "{url}");
    assert_eq!(
        fs::read_to_string(folder.0.join("opened")).unwrap().trim(),
        url,
        "the browser was sent there"
    );
    let took = format!("five commands took {:.1} s, after the build", began.elapsed().as_secs_f32());
    println!("{took}");
    fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/quickstart"), took).unwrap();

    // The log that is followed ends by itself with its instance.
    let mut script = "export PATH=\"$PWD/target/debug:$PATH\"\n".to_owned();
    for line in rest.commands.lines() {
        let command = line.split(" #").next().unwrap_or_default().trim();
        script += &match command {
            follow if follow.ends_with(" -f") => format!("{follow} &\n"),
            trace if trace.ends_with(" CORRELATION_ID") => {
                format!("{LAST_ID}{}\n", trace.replace("CORRELATION_ID", "$id"))
            }
            other => format!("{other}\n"),
        };
    }
    let said =
        Shell::new(&folder.0, &dev).on_pipe(&(script + "wait\ngpuaas receipt hello\ngpuaas down hello-2\n"));
    assert!(said.contains("hello-2"), "{said}");
    assert_eq!(engine.leftovers(), Vec::<String>::new(), "nothing of any instance is left");
    dev.stop();
    assert_eq!(engine.reserve(), Vec::<String>::new(), "nothing at all is");
}

/// The page leaves it to its reader to choose one.
const LAST_ID: &str =
    "id=$(gpuaas events -o json | grep -o '\"correlationid\": *\"[^\"]*\"' | tail -n 1 | cut -d'\"' -f4)\n";

/// Commands of the page, and what it says they print, if it says so.
#[derive(Debug)]
struct Block {
    commands: String,
    prints: Option<String>,
}

fn blocks() -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for fenced in PAGE.split("```").skip(1).step_by(2) {
        match fenced.split_once('\n').expect("a line after the fence") {
            ("sh", commands) => blocks.push(Block { commands: commands.to_owned(), prints: None }),
            (_, prints) => blocks.last_mut().expect("a command before").prints = Some(prints.to_owned()),
        }
    }
    blocks
}

/// A person in the folder of the repository, with a browser that keeps where it was sent.
struct Shell(Vec<(&'static str, String)>, PathBuf);

impl Shell {
    fn new(folder: &Path, dev: &Dev) -> Shell {
        let program = Path::new(env!("CARGO_BIN_EXE_gpuaas"));
        let (target, tools) = (folder.join("repository/target"), folder.join("tools"));
        for made in [&target, &tools] {
            fs::create_dir_all(made).unwrap();
        }
        if !target.join("debug").exists() {
            symlink(program.parent().unwrap(), target.join("debug")).unwrap();
        }
        let browser = tools.join("xdg-open");
        fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > {}\n", folder.join("opened").display()))
            .unwrap();
        fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let variables = vec![
            ("HOME", folder.display().to_string()),
            ("PATH", format!("{}:{path}", tools.display())),
            ("NO_COLOR", "1".to_owned()),
            // The page's platform is on the usual port; this one is on any that was free.
            ("GPUAAS_BASE_URL", dev.ready["api_url"].as_str().unwrap().to_owned()),
        ];
        Shell(variables, folder.join("repository"))
    }

    fn on_pipe(&self, script: &str) -> String {
        self.runs(Command::new("bash").args(["-c", &self.whole(script)]))
    }

    /// What a person sees who types it: of a line that is drawn anew, the last.
    fn on_terminal(&self, script: &str) -> String {
        let file = self.1.with_extension("sh");
        fs::write(&file, self.whole(script)).unwrap();
        let typed = format!("bash {}", file.display());
        let said =
            self.runs(Command::new("script").args(["--quiet", "--return", "--command", &typed, "/dev/null"]));
        let seen = |line: &str| plain(line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default());
        said.lines().map(|line| seen(line) + "\n").collect()
    }

    fn whole(&self, script: &str) -> String {
        format!("set -euo pipefail\nexec 2>&1\n{script}")
    }

    fn runs(&self, command: &mut Command) -> String {
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("GPUAAS_") || name.starts_with("XDG_"))
        {
            command.env_remove(name);
        }
        command.current_dir(&self.1).envs(self.0.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        // Open until the end: a terminal whose keyboard is gone hangs up.
        let keyboard = child.stdin.take();
        let said = child.wait_with_output().expect("it ends");
        drop(keyboard);
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{text}");
        text
    }
}

/// Without what only moves the cursor.
fn plain(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |seen, part| {
        seen + part.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).get(1..).unwrap_or_default()
    })
}

/// Every line that the page shows was printed, in its order; `…` stands for any lines.
fn holds(block: &Block, said: &str) {
    let Some(prints) = &block.prints else { return };
    let printed: Vec<String> = said.lines().map(alike).collect();
    let (mut at, mut any) = (0, false);
    for line in prints.lines() {
        if line.trim() == "…" {
            any = true;
            continue;
        }
        let found = printed[at..].iter().position(|one| *one == alike(line));
        match found {
            Some(further) if any || further == 0 => at += further + 1,
            _ => panic!("{}the page shows {line:?} where this was printed:\n{said}", block.commands),
        }
        any = false;
    }
    assert!(any || at == printed.len(), "{}the page ends where more was printed:\n{said}", block.commands);
}

/// What differs each time is written alike: ids, times, addresses, and names of nodes.
fn alike(line: &str) -> String {
    let word = |word: &str| match word {
        id if uuid::Uuid::try_parse(id).is_ok() => "ID".to_owned(),
        url if url.starts_with("http://127.0.0.1:") => "URL".to_owned(),
        node if node.starts_with("local-") => "NODE".to_owned(),
        time if time.strip_suffix('s').unwrap_or(time).parse::<f64>().is_ok() => "TIME".to_owned(),
        other => other.to_owned(),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
