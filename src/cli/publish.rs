//! `gpuaas publish`: intent, credential, push, signature, registration and verification as one command. It goes on where
//! it broke off, and does nothing for what is published already.

mod blob;
mod image;

use std::path::{Path, PathBuf};

use api_types::{Artifact, NewArtifact, NewPublishIntent, NewVerification, Page, PublishIntent};
use clap::Args;
use clients::trust::{Provenance, SignerKey};
use domain::Digest;
use domain::artifact::{Lifecycle, Trust};
use domain::manifest::ArtifactKind;

use self::blob::Blob;
use self::image::Image;
use super::client::Client;
use super::output::{self, Format};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The app's slug
    app: String,
    /// The version it belongs to
    #[arg(value_name = "VERSION")]
    app_version: String,
    /// An image: an OCI layout, as a folder or a tar file, or `docker:NAME` of this machine's engine
    #[arg(long, value_name = "PATH|docker:NAME", required_unless_present = "blob", conflicts_with = "blob")]
    image: Option<String>,
    /// Any file
    #[arg(long, value_name = "FILE")]
    blob: Option<PathBuf>,
    /// What the version's manifest calls it
    #[arg(long, default_value = "runtime")]
    name: String,
    /// Which of several, where the manifest has variants
    #[arg(long)]
    variant: Option<String>,
    /// Sign it with this key: P-256 in PKCS#8 PEM form, without a passphrase
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Attach this SLSA provenance: an in-toto statement about these very bytes, which --key signs, or a DSSE envelope or sigstore
    /// bundle with one
    #[arg(long, value_name = "FILE")]
    provenance: Option<PathBuf>,
}

/// What is said of it beside its bytes.
struct Said {
    key: Option<SignerKey>,
    provenance: Option<Provenance>,
}

impl Said {
    fn read(args: &PublishArgs, key: Option<SignerKey>, of: &Digest) -> Result<Said, Failure> {
        let provenance = match &args.provenance {
            Some(path) => {
                let read = Provenance::read(text_of(path)?.as_bytes(), of, key.as_ref());
                Some(read.map_err(|fault| wrong(path, &fault))?)
            }
            None => None,
        };
        Ok(Said { key, provenance })
    }

    fn is_nothing(&self) -> bool {
        self.key.is_none() && self.provenance.is_none()
    }

    /// Of a blob, which is sent with it; an image's lies beside it.
    fn provenance_of(&self, source: &Source) -> Option<String> {
        let told = self.provenance.as_ref().filter(|_| matches!(source, Source::Blob(_)));
        told.map(|provenance| provenance.envelope.clone())
    }
}

/// What is published, read and hashed on this machine.
enum Source {
    Image(Image),
    Blob(Blob),
}

impl Source {
    fn open(args: &PublishArgs) -> Result<Source, Failure> {
        match (&args.image, &args.blob) {
            (Some(source), _) => Image::open(source).map(Source::Image),
            (None, Some(path)) => Blob::open(path).map(Source::Blob),
            (None, None) => Err(Failure::usage("what? Name it with --image or --blob")),
        }
    }

    fn digest(&self) -> &Digest {
        match self {
            Source::Image(image) => &image.digest,
            Source::Blob(blob) => &blob.digest,
        }
    }

    fn size(&self) -> u64 {
        match self {
            Source::Image(image) => image.size,
            Source::Blob(blob) => blob.size,
        }
    }

    /// As much as there is: the platform's own limit is lower than what it takes from those who say what they have.
    fn max_bytes(&self) -> Option<i64> {
        match self {
            Source::Image(_) => None,
            Source::Blob(blob) => i64::try_from(blob.size.max(1)).ok(),
        }
    }

    /// Of a blob, which is sent with it; an image's lies beside it.
    fn signature(&self, key: Option<&SignerKey>) -> Result<Option<String>, Failure> {
        match (self, key) {
            (Source::Blob(blob), Some(key)) => key.sign_blob(&blob.digest).map(Some).map_err(Failure::usage),
            _ => Ok(None),
        }
    }

    fn kind(&self) -> ArtifactKind {
        match self {
            Source::Image(_) => ArtifactKind::Oci,
            Source::Blob(_) => ArtifactKind::Blob,
        }
    }
}

pub async fn run(args: &PublishArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let key = args.key.as_deref().map(read_key).transpose()?;
    let source = Source::open(args)?;
    let said = Said::read(args, key, source.digest())?;
    let mut artifact = match known(args, client, source.digest()).await? {
        Some(artifact) => {
            output::say(&format!("{} is published already", source.digest()));
            if artifact.trust_state != Trust::Verified && !said.is_nothing() {
                vouch(args, client, &source, &said).await?;
            }
            artifact
        }
        None => publish(args, client, &source, &said).await?,
    };
    if artifact.trust_state != Trust::Verified {
        let path = client.in_project(&format!("/app-artifacts/{}/verify", artifact.id))?;
        let asked = NewVerification {
            reason: None,
            signature: source.signature(said.key.as_ref())?,
            provenance: said.provenance_of(&source),
        };
        artifact = client.post_unhurried(&path, &asked).await?;
    }
    tell(&artifact, format)
}

/// These bytes for this very place, where the platform has them.
async fn known(args: &PublishArgs, client: &Client, digest: &Digest) -> Result<Option<Artifact>, Failure> {
    let query = [
        ("app_slug", args.app.clone()),
        ("app_version", args.app_version.clone()),
        ("artifact_name", args.name.clone()),
        ("digest", digest.to_string()),
    ];
    let page: Page<Artifact> = client.get(&client.in_project("/app-artifacts")?, &query).await?;
    let same = |artifact: &Artifact| {
        artifact.slot.variant == args.variant && artifact.lifecycle_state != Lifecycle::Retired
    };
    Ok(page.items.into_iter().find(same))
}

async fn publish(
    args: &PublishArgs,
    client: &Client,
    source: &Source,
    said: &Said,
) -> Result<Artifact, Failure> {
    let intent = ask(args, client, source).await?;
    match source {
        Source::Image(image) => {
            let repository = image::open_repository(client, &intent).await?;
            image.push(&repository, intent.tag.as_deref()).await?;
            image.vouch(&repository, said).await?;
        }
        Source::Blob(blob) => blob.upload(client, &intent).await?,
    }
    let new = NewArtifact {
        app_slug: args.app.clone(),
        app_version: args.app_version.clone(),
        artifact_name: args.name.clone(),
        variant: args.variant.clone(),
        artifact_kind: source.kind(),
        source_type: None,
        repository: intent.repository,
        source_uri: intent.source_uri,
        digest: source.digest().to_string(),
        tag: None,
        media_type: None,
        size_bytes: None,
        signature: source.signature(said.key.as_ref())?,
        provenance: said.provenance_of(source),
        intent_id: None,
    };
    client.post_unhurried(&client.in_project("/app-artifacts")?, &new).await
}

async fn ask(args: &PublishArgs, client: &Client, source: &Source) -> Result<PublishIntent, Failure> {
    let wanted = NewPublishIntent {
        app_slug: args.app.clone(),
        app_version: args.app_version.clone(),
        artifact_name: args.name.clone(),
        variant: args.variant.clone(),
        artifact_kind: source.kind(),
        source_type: None,
        channel: None,
        expected_digest: Some(source.digest().to_string()),
        signing_key_id: None,
        max_bytes: source.max_bytes(),
        ttl_seconds: Some(lifetime(source.size())),
    };
    client.post(&client.in_project("/app-artifacts/publish-intents")?, &wanted).await
}

/// For an image that is there already and lacks a signature or provenance.
async fn vouch(args: &PublishArgs, client: &Client, source: &Source, said: &Said) -> Result<(), Failure> {
    let Source::Image(image) = source else { return Ok(()) };
    let intent = ask(args, client, source).await?;
    image.vouch(&image::open_repository(client, &intent).await?, said).await
}

/// For how many seconds a permission is asked: an hour, and longer for what takes longer at a MiB in a second, up to the
/// day that is the longest there is.
fn lifetime(size: u64) -> i32 {
    i32::try_from(size >> 20).unwrap_or(i32::MAX).clamp(3600, 86_400)
}

fn read_key(path: &Path) -> Result<SignerKey, Failure> {
    SignerKey::from_pem(&text_of(path)?).map_err(|fault| wrong(path, &fault))
}

fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{}: {why}", path.display()))
}

/// The line to paste, or why the platform does not believe it.
fn tell(artifact: &Artifact, format: Format) -> Result<(), Failure> {
    let place = artifact.repository.as_ref().or(artifact.source_uri.as_ref()).cloned().unwrap_or_default();
    let trust = serde_json::to_value(artifact.trust_state).map_err(Failure::server)?;
    let row = vec![
        format!("{place}@{}", artifact.digest),
        artifact.id.to_string(),
        trust.as_str().unwrap_or_default().to_owned(),
    ];
    output::print(format, &["artifact", "id", "trust"], &[row], artifact)?;
    if artifact.trust_state == Trust::Verified {
        return Ok(());
    }
    let why: Vec<&str> = artifact.evidence.failures().map(|check| check.message.as_str()).collect();
    Err(Failure::failed(format!("it is published and not trusted: {}", why.join("; "))))
}
