//! Pulling an image by digest with the task's own credential, telling how far it is.

use std::collections::HashMap;

use bollard::auth::DockerCredentials;
use bollard::query_parameters::CreateImageOptionsBuilder;
use domain::StatusReason;
use futures::StreamExt;
use node_protocol::{Image, PullCredential};

use super::Docker;
use crate::drivers::{DriverFault, Told};

impl Docker {
    /// An image that is here already by its digest is not asked for again: a rollback needs no registry.
    pub(super) async fn ensure_image(
        &self,
        image: &Image,
        credential: Option<&PullCredential>,
        told: &Told,
    ) -> Result<(), DriverFault> {
        if self.client.inspect_image(&image.reference()).await.is_ok() {
            return Ok(());
        }
        if image.registry.is_none() {
            let message = format!("the image {} is not on this node", image.digest);
            return Err(DriverFault::new(StatusReason::ImagePullFailed, message));
        }
        tokio::select! {
            pulled = self.pull(image, credential, told) => pulled,
            overtaken = told.overtaken() => Err(overtaken),
        }
    }

    async fn pull(
        &self,
        image: &Image,
        credential: Option<&PullCredential>,
        told: &Told,
    ) -> Result<(), DriverFault> {
        let options = CreateImageOptionsBuilder::default().from_image(&image.reference()).build();
        let credentials = credential.map(|credential| DockerCredentials {
            username: Some(credential.username.clone()),
            password: Some(credential.password.clone()),
            ..DockerCredentials::default()
        });
        let mut layers: HashMap<String, (u64, u64)> = HashMap::new();
        let mut pull = std::pin::pin!(self.client.create_image(Some(options), None, credentials));
        while let Some(said) = pull.next().await {
            let said = said.map_err(|error| refused(&error.to_string()))?;
            if let Some(error) = said.error_detail.and_then(|detail| detail.message) {
                return Err(refused(&error));
            }
            let (Some(layer), Some(status)) = (said.id, said.status) else { continue };
            let detail = said.progress_detail.unwrap_or_default();
            if let Some(known) = layers.remove(&layer).or_else(|| detail.total.map(|_| (0, 0))) {
                layers.insert(layer, pulled(&status, known, (detail.current, detail.total)));
                let sum = |part: fn(&(u64, u64)) -> u64| layers.values().map(part).sum::<u64>();
                told.pulled(sum(|layer| layer.0), sum(|layer| layer.1));
            }
        }
        Ok(())
    }
}

/// How far a layer is now. What has come is unpacked afterwards, and that counts from nothing again.
fn pulled(status: &str, known: (u64, u64), (current, total): (Option<i64>, Option<i64>)) -> (u64, u64) {
    let bytes = |count: Option<i64>| count.unwrap_or_default().unsigned_abs();
    match status {
        "Downloading" => (bytes(current), bytes(total).max(known.1)),
        // It has not begun.
        "Waiting" | "Pulling fs layer" => known,
        _ => (known.1, known.1),
    }
}

/// What the engines say of bytes that are not those of the digest: Docker's own store, then containerd's, then others.
const WRONG_BYTES: [&str; 5] = [
    "verification failed for digest",
    "unexpected commit digest",
    "unexpected commit size",
    "digest mismatch",
    "digest does not match",
];

/// The engine tells a wrong credential, a missing image and wrong bytes apart by words alone.
fn refused(error: &str) -> DriverFault {
    let wrong_bytes = WRONG_BYTES.iter().any(|words| error.contains(words));
    let reason = if wrong_bytes { StatusReason::DigestMismatch } else { StatusReason::ImagePullFailed };
    DriverFault::new(reason, format!("the image could not be pulled: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_stays_come_while_it_is_unpacked() {
        let half = pulled("Downloading", (0, 0), (Some(5), Some(10)));
        assert_eq!(half, (5, 10));
        assert_eq!(pulled("Pulling fs layer", half, (None, None)), half);
        let all = pulled("Download complete", half, (None, None));
        assert_eq!(all, (10, 10));
        assert_eq!(pulled("Extracting", all, (Some(1), Some(10))), (10, 10));
    }

    #[test]
    fn wrong_bytes_are_told_from_a_refused_pull() {
        let of = |words: &str| refused(words).reason;
        let (one, other) = (format!("sha256:{}", "1".repeat(64)), format!("sha256:{}", "2".repeat(64)));
        for words in [
            // Docker's own store of images, of a manifest and of a layer.
            format!("manifest verification failed for digest {one}"),
            format!("filesystem layer verification failed for digest {one}"),
            // containerd's store.
            format!(
                "failed commit on ref \"manifest-{one}\": unexpected commit digest {other}, expected {one}: failed precondition"
            ),
            format!(
                "failed commit on ref \"layer-{one}\": commit failed: unexpected commit digest {other}, expected {one}: failed precondition"
            ),
            format!(
                "failed commit on ref \"layer-{one}\": unexpected commit size 37, expected 3401613: failed precondition"
            ),
            format!("failed to copy: digest mismatch: expected {one}, got {other}"),
            format!("provided digest does not match the content: {one}"),
        ] {
            assert_eq!(of(&words), StatusReason::DigestMismatch, "{words}");
        }
        assert_eq!(of("unauthorized: authentication required"), StatusReason::ImagePullFailed);
        assert_eq!(of("manifest unknown"), StatusReason::ImagePullFailed);
        let platform =
            format!("image with reference {one} was found but does not match the specified platform");
        assert_eq!(of(&platform), StatusReason::ImagePullFailed);
    }
}
