//! The quickstarts, executed: their commands as they are written there, by a real shell, against the built binary with a real
//! container engine and registry, and their answers held against what the pages expect.

mod blocks;
mod by_commands;
mod by_curl;
mod image;
mod original;
mod shell;

use self::image::image;
use self::shell::Shell;
use crate::support::cluster::Folder;
use crate::support::docker::Engine;
use crate::support::process::Dev;

/// A platform with its first app, somebody at a terminal, and the image of the next version.
struct Beginning {
    engine: Engine,
    folder: Folder,
    dev: Dev,
    shell: Shell,
}

impl Beginning {
    async fn new() -> Beginning {
        let engine = Engine::start().await;
        let folder = Folder::new();
        let first = image(&folder.0.join("first"), "first", true);
        let more = ["--docker-host", &engine.host(), "--hello-image", first.to_str().unwrap()];
        let dev = Dev::start(&folder.0.join("data"), &more);
        let mut shell = Shell::new(&folder.0, &dev.ready);
        image(&shell.folder.join("hello-image"), "second", true);
        shell.step("Quickstart");
        Beginning { engine, folder, dev, shell }
    }
}
