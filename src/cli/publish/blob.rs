//! A file: uploaded to where the intent says, from the byte where an upload that broke off stands. A bucket takes a file in
//! one piece, so there it begins anew.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use api_types::PublishIntent;
use clients::moving::{self, Broken, Patience};
use domain::Digest;
use reqwest::{Response, StatusCode};
use sha2::{Digest as _, Sha256};

use crate::cli::client::{self, Client};
use crate::cli::output;
use crate::cli::progress::Progress;
use crate::failure::Failure;

/// How often an upload may break off before it is left to the next command.
const TRIES: u32 = 6;
const PATIENCE: Patience =
    Patience { between_bytes: Duration::from_secs(60), for_the_answer: Duration::from_secs(900) };

pub struct Blob {
    path: PathBuf,
    pub digest: Digest,
    pub size: u64,
}

/// Where it goes.
struct Place<'a> {
    url: String,
    http: reqwest::Client,
    intent: &'a PublishIntent,
    /// The platform's own uploads can be gone on with.
    goes_on: bool,
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
        let place = Place { url, http, intent, goes_on: path.starts_with('/') };
        let mut wait = Duration::from_secs(1);
        for _ in 1..TRIES {
            match self.upload_rest(&place).await? {
                Ok(()) => return Ok(()),
                Err(broken) => {
                    output::say(&format!(
                        "the upload broke off ({broken}); going on in {} s",
                        wait.as_secs()
                    ));
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
            }
        }
        self.upload_rest(&place).await?.map_err(|broken| {
            Failure::server(format!("the upload broke off: {broken}; run the command again to go on"))
        })
    }

    /// Whether it arrived; what refuses it for good is a failure.
    async fn upload_rest(&self, place: &Place<'_>) -> Result<Result<(), Broken>, Failure> {
        let offset = match place.offset().await {
            Ok(offset) => offset,
            Err(broken) => return Ok(Err(Broken::Connection(broken))),
        };
        if offset > 0 && offset == self.size {
            output::say("all of it is there already");
            return Ok(Ok(()));
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let progress = Arc::new(Progress::new(&name, self.size, offset));
        let mut request = place.http.put(&place.url);
        if offset > 0 {
            let range = format!("bytes {offset}-{}/{}", self.size.saturating_sub(1), self.size);
            request = request.header("content-range", range);
        }
        for (header, value) in place.intent.upload_headers.iter().flatten() {
            request = request.header(header, value);
        }
        let rest = Arc::clone(&progress).part(self.path.clone(), offset..self.size).await;
        let rest = rest.map_err(Failure::usage)?;
        match moving::send(request, rest, self.size - offset, PATIENCE).await {
            Ok(answer) if answer.status().is_success() => {
                progress.done();
                Ok(Ok(()))
            }
            Ok(answer) => place.refusal(answer).await.map(Ok),
            Err(broken) => Ok(Err(broken)),
        }
    }
}

impl Place<'_> {
    async fn offset(&self) -> Result<u64, reqwest::Error> {
        if !self.goes_on {
            return Ok(0);
        }
        let answer = self.http.head(&self.url).timeout(PATIENCE.between_bytes).send().await?;
        if answer.status() != StatusCode::NO_CONTENT {
            return Ok(0);
        }
        let told = answer.headers().get("upload-offset").and_then(|value| value.to_str().ok());
        Ok(told.and_then(|text| text.parse().ok()).unwrap_or_default())
    }

    /// What a refusal means. A bucket takes nothing where something lies: then an answer was lost on the way, and what lies
    /// there is read when it is registered.
    async fn refusal(&self, answer: Response) -> Result<(), Failure> {
        let status = answer.status();
        if !self.goes_on && status == StatusCode::PRECONDITION_FAILED {
            output::say("all of it is there already");
            return Ok(());
        }
        let text = answer.text().await.unwrap_or_default();
        if self.goes_on {
            return Err(client::refusal(status, &text));
        }
        let word =
            |name: &str| between(&text, &format!("<{name}>"), &format!("</{name}>")).unwrap_or_default();
        let said = format!("{status} {} {}", word("Code"), word("Message"));
        Err(Failure::server(format!("the artifact store refused the upload: {}", said.trim())))
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}
