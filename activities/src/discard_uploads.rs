//! Deletes what was uploaded for intents that are over. Gone already is well, so it may be repeated; there is no undo. An
//! upload that somebody still writes to is waited for.

use std::time::Duration;

use clients::blobs::BlobName;
use domain::artifact;
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::publish_intents::{self, Closed};

use crate::Env;
use crate::env::blob_trouble;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DiscardUploads {
    pub closed: Vec<Closed>,
}

impl Activity for DiscardUploads {
    const NAME: &'static str = "discard_uploads";
    /// About half an hour of a store that does not answer; the next look finds the same.
    const RETRY: Retry = Retry::times(40).at_most(Duration::from_secs(60));
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        for Closed { intent_id, source_uri } in &self.closed {
            let Some(source_uri) = source_uri else { continue };
            let mut conn = env.pool().begin().await?;
            let over = publish_intents::is_over(&mut conn, *intent_id).await?;
            drop(conn);
            if over {
                let name = BlobName { key: artifact::key_of(source_uri).to_owned(), intent: *intent_id };
                env.blobs()?.delete(&name).await.map_err(blob_trouble)?;
            }
        }
        Ok(())
    }
}
