//! Having the program of a release: streamed to the disk, hashed on the way, bounded by the size that was told. It has its name
//! only once all of it is there and is what the task says; of anything else nothing is left behind.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use domain::{Digest, StatusReason};
use node_protocol::SelfUpdate;
use sha2::{Digest as _, Sha256};
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use crate::drivers::{DriverFault, Told};
use crate::home::Home;
use crate::platform::{Platform, PlatformFault};

/// A line that breaks is asked again so often.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// The longest silence in the middle.
const NEXT_BYTES_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Platform(#[from] PlatformFault),
    #[error("it broke off after {got} of {wanted} bytes: {why}")]
    BrokeOff { got: u64, wanted: u64, why: String },
    #[error("there is more of it than the {0} bytes that were told")]
    TooLong(u64),
    #[error("its bytes are {0}, not what the task says")]
    OtherBytes(Digest),
    #[error("it cannot be written: {0}")]
    Disk(#[from] io::Error),
}

/// Afterwards the program is at [`Home::program`].
pub(super) async fn fetch(
    home: &Home,
    platform: &Platform,
    wanted: &SelfUpdate,
    told: &Told,
) -> Result<(), DriverFault> {
    let program = home.program(&wanted.digest);
    let folder = program.parent().unwrap_or(&program);
    for attempt in 1.. {
        let partial = folder.join("gpuaas.partial");
        let trouble = match had(platform, wanted, told, &partial, &program).await {
            Ok(()) => return Ok(()),
            Err(trouble) => trouble,
        };
        let _ = fs::remove_dir_all(folder).await;
        let passes =
            matches!(trouble, Trouble::Platform(PlatformFault::Unreachable(_)) | Trouble::BrokeOff { .. });
        if !passes || attempt == TRIES {
            return Err(fault(wanted, &trouble));
        }
        tracing::warn!(%trouble, "the program of a release could not be had yet");
        sleep(BETWEEN_TRIES).await;
    }
    Ok(())
}

fn fault(wanted: &SelfUpdate, trouble: &Trouble) -> DriverFault {
    let reason = match trouble {
        Trouble::TooLong(_) | Trouble::OtherBytes(_) => StatusReason::DigestMismatch,
        Trouble::Platform(_) | Trouble::BrokeOff { .. } => StatusReason::ImagePullFailed,
        Trouble::Disk(_) => StatusReason::Internal,
    };
    let SelfUpdate { artifact, version, .. } = wanted;
    DriverFault::new(reason, format!("{artifact} of release {version} could not be had: {trouble}"))
}

async fn had(
    platform: &Platform,
    wanted: &SelfUpdate,
    told: &Told,
    partial: &Path,
    program: &Path,
) -> Result<(), Trouble> {
    let folder = partial.parent().unwrap_or(partial);
    fs::create_dir_all(folder).await?;
    let mut file = File::create(partial).await?;
    let digest = stream(platform, wanted, told, &mut file).await?;
    if digest != wanted.digest {
        return Err(Trouble::OtherBytes(digest));
    }
    file.set_permissions(std::fs::Permissions::from_mode(0o700)).await?;
    file.sync_all().await?;
    fs::rename(partial, program).await?;
    // What says that it is there must not outlive it: the names too are on the disk first.
    for named_in in folder.ancestors().take(3) {
        File::open(named_in).await?.sync_all().await?;
    }
    Ok(())
}

async fn stream(
    platform: &Platform,
    wanted: &SelfUpdate,
    told: &Told,
    file: &mut File,
) -> Result<Digest, Trouble> {
    let size = wanted.size_bytes;
    let mut answer = platform.program(&wanted.version, &wanted.artifact).await?;
    let (mut hash, mut got) = (Sha256::new(), 0_u64);
    let broke_off = |got, why| Trouble::BrokeOff { got, wanted: size, why };
    loop {
        let bytes = match timeout(NEXT_BYTES_WITHIN, answer.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => break,
            Ok(Err(error)) => return Err(broke_off(got, error.without_url().to_string())),
            Err(_) => return Err(broke_off(got, "nothing more came".to_owned())),
        };
        got += bytes.len() as u64;
        if got > size {
            return Err(Trouble::TooLong(size));
        }
        hash.update(&bytes);
        file.write_all(&bytes).await?;
        told.pulled(got, size);
    }
    file.flush().await?;
    if got < size {
        return Err(broke_off(got, "it ended".to_owned()));
    }
    Ok(Digest::from_sha256(hash.finalize().into()))
}
