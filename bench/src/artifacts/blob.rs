//! One blob: sent, hashed on the way, and taken by its digest. What `sha256sum` needs for the file alone is the reference;
//! the two take turns, and the file is in memory for both.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rand::RngCore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::{Place, Size};
use crate::failure::Failure;
use crate::process::{peak_resident, resident};
use crate::report::{Bar, Figure, median, say};

const CHUNK: usize = 1 << 20;

pub(super) async fn measure(place: &Place, size: Size) -> Result<Vec<Figure>, Failure> {
    let file = Blob::make(size.blob_bytes)?;
    let digest = file.sum()?.0;
    let pid = place.platform.pid();
    // What the first upload of all brings into memory does not grow with the blob.
    let small = Blob::make(CHUNK as u64)?;
    publish(place, &small, &small.sum()?.0, 0).await?;
    let before = resident(pid)?;
    let (mut sums, mut uploads) = (Vec::new(), Vec::new());
    for round in 1..=size.rounds {
        let (again, took) = file.sum()?;
        if again != digest {
            return Err(Failure::Setup("the file changed".into()));
        }
        sums.push(size.blob_bytes as f64 / took);
        uploads.push(size.blob_bytes as f64 / publish(place, &file, &digest, round).await?);
        // The next round finds the disk and the page cache as this one did.
        let kept = place.platform.blobs().join("projects");
        std::fs::remove_dir_all(kept).map_err(Failure::io("remove what was kept"))?;
        say(&format!("blob {round}/{}: {:.0} MiB/s", size.rounds, uploads[uploads.len() - 1] / 1048576.0));
    }
    let grown = peak_resident(pid)?.saturating_sub(before) as f64 / 1e6;
    let beside =
        format!("sha256sum alone {:.0} MiB/s, medians of {}", median(&sums) / 1048576.0, size.rounds);
    Ok(vec![
        Figure {
            name: "upload and verify to sha256sum",
            value: median(&uploads) / median(&sums),
            unit: "times",
            bar: Bar::AtLeast(0.7),
            beside,
        },
        Figure {
            name: "memory grown by uploads",
            value: grown,
            unit: "MB",
            bar: Bar::AtMost(40.0),
            beside: format!("a blob of {} MiB", size.blob_bytes >> 20),
        },
    ])
}

/// Seconds from the first byte to the answer that it is registered and verified: its bytes are hashed on their way in and read
/// once more by whoever judges them.
async fn publish(place: &Place, file: &Blob, digest: &str, round: usize) -> Result<f64, Failure> {
    let mut what = json!({
        "app_slug": "hello", "app_version": format!("1.0.{round}"), "artifact_name": "weights", "artifact_kind": "blob",
    });
    let intent = place.ask("/app-artifacts/publish-intents", &what).await?;
    let path = intent["upload_path"].as_str().unwrap_or_default().to_owned();
    let began = Instant::now();
    let answer = send(place, &path, &file.path).await?;
    if answer["digest"] != digest {
        return Err(Failure::Setup(format!("uploaded {answer} instead of {digest}")));
    }
    what["digest"] = json!(digest);
    let artifact = place.ask("/app-artifacts", &what).await?;
    let id = artifact["id"].as_str().unwrap_or_default();
    let judged = place.ask(&format!("/app-artifacts/{id}/verify"), &json!({})).await?;
    if judged["trust_state"] != "verified" {
        return Err(Failure::Setup(format!("not verified: {judged}")));
    }
    Ok(began.elapsed().as_secs_f64())
}

async fn send(place: &Place, path: &str, file: &Path) -> Result<Value, Failure> {
    let address = place.platform.address;
    let mut line = TcpStream::connect(address).await.map_err(Failure::io("connect"))?;
    let mut file = tokio::fs::File::open(file).await.map_err(Failure::io("open the blob"))?;
    let length = file.metadata().await.map_err(Failure::io("measure the blob"))?.len();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    line.write_all(head.as_bytes()).await.map_err(Failure::io("send"))?;
    file.set_max_buf_size(CHUNK);
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk).await.map_err(Failure::io("read the blob"))? {
            0 => break,
            read => {
                // A server that refuses hangs up, and has said why.
                if line.write_all(&chunk[..read]).await.is_err() {
                    break;
                }
            }
        }
    }
    let mut answer = Vec::new();
    line.read_to_end(&mut answer).await.map_err(Failure::io("read the answer"))?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    if !head.starts_with("HTTP/1.1 200") {
        return Err(Failure::Setup(format!("refused: {answer}")));
    }
    serde_json::from_str(body).map_err(|error| Failure::Setup(error.to_string()))
}

/// A file that goes with the measurement.
struct Blob {
    path: PathBuf,
}

impl Blob {
    fn make(bytes: u64) -> Result<Blob, Failure> {
        let path = std::env::temp_dir().join(format!("gpuaas-bench-{}", Uuid::new_v4().simple()));
        let blob = Blob { path };
        let mut file = BufWriter::new(File::create(&blob.path).map_err(Failure::io("make the blob"))?);
        let mut chunk = vec![0; CHUNK];
        for _ in 0..bytes / CHUNK as u64 {
            rand::rng().fill_bytes(&mut chunk);
            file.write_all(&chunk).map_err(Failure::io("write the blob"))?;
        }
        file.flush().map_err(Failure::io("write the blob"))?;
        Ok(blob)
    }

    /// The digest, and how long it took in seconds.
    fn sum(&self) -> Result<(String, f64), Failure> {
        let began = Instant::now();
        let said =
            Command::new("sha256sum").arg(&self.path).output().map_err(Failure::io("run sha256sum"))?;
        let took = began.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        let hex = text.split_whitespace().next().unwrap_or_default().trim_start_matches('\\');
        Ok((format!("sha256:{hex}"), took))
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
