//! The images that the pages' apps are made of, and what they answer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clients::oci_layout::{FileEntry, Image, pack};

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
