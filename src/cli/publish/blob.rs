//! A file: uploaded to where the intent says, from the byte where an upload that broke off stands.

use std::io::{Read, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_types::PublishIntent;
use domain::Digest;
use reqwest::{Body, StatusCode};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncSeekExt;

use crate::cli::client::{self, Client};
use crate::cli::output;
use crate::cli::progress::Progress;
use crate::failure::Failure;

pub struct Blob {
    path: PathBuf,
    pub digest: Digest,
    size: u64,
}

impl Blob {
    pub fn open(path: &Path) -> Result<Blob, Failure> {
        let failed = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
        let mut file = std::fs::File::open(path).map_err(failed)?;
        let (mut hash, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
        loop {
            let read = file.read(&mut buffer).map_err(failed)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer[..read]);
            size += read as u64;
        }
        Ok(Blob { path: path.to_owned(), digest: Digest::from_sha256(hash.finalize().into()), size })
    }

    pub async fn upload(&self, client: &Client, intent: &PublishIntent) -> Result<(), Failure> {
        let path = intent.upload_path.as_deref();
        let path = path.ok_or_else(|| Failure::server("the platform does not say where to upload"))?;
        let (url, http) = (client.address(path), client::http()?);
        // Only the platform's own uploads can be gone on with.
        let offset = if path.starts_with('/') { offset(&http, &url).await? } else { 0 };
        if offset > 0 && offset == self.size {
            output::say("all of it is there already");
            return Ok(());
        }
        let mut file = tokio::fs::File::open(&self.path).await.map_err(Failure::usage)?;
        file.seek(SeekFrom::Start(offset)).await.map_err(Failure::usage)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let progress = Arc::new(Progress::new(&name, self.size, offset));
        let mut request = http.put(&url).header("content-length", self.size - offset);
        if offset > 0 {
            let range = format!("bytes {offset}-{}/{}", self.size.saturating_sub(1), self.size);
            request = request.header("content-range", range);
        }
        for (header, value) in intent.upload_headers.iter().flatten() {
            request = request.header(header, value);
        }
        let answer = request.body(Body::wrap_stream(Arc::clone(&progress).watch(file))).send().await;
        let answer = answer.map_err(|error| client::unreachable(&url, &error))?;
        let status = answer.status();
        if !status.is_success() {
            return Err(client::refusal(status, &answer.text().await.unwrap_or_default()));
        }
        progress.done();
        Ok(())
    }
}

async fn offset(http: &reqwest::Client, url: &str) -> Result<u64, Failure> {
    let answer = http.head(url).send().await.map_err(|error| client::unreachable(url, &error))?;
    if answer.status() != StatusCode::NO_CONTENT {
        return Ok(0);
    }
    let told = answer.headers().get("upload-offset").and_then(|value| value.to_str().ok());
    Ok(told.and_then(|text| text.parse().ok()).unwrap_or_default())
}
