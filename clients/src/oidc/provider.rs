//! The keys of one issuer: read when first needed, kept for an hour, read again early when a token names a key that
//! is not among them. An issuer that does not answer keeps being believed by its last known keys for a day.

use std::sync::{Arc, RwLock};

use chrono::{DateTime, TimeDelta, Utc};
use jsonwebtoken::Header;
use serde::Deserialize;
use tokio::sync::Mutex;
use tracing::warn;

use super::fetch::Fetcher;
use crate::fault::TokenFault;
use crate::key_set::KeySet;

const FRESH: TimeDelta = TimeDelta::hours(1);
const USABLE: TimeDelta = TimeDelta::hours(24);
/// Between two questions to an issuer, whatever tokens say: strangers must not make us ask without end.
const PAUSE: TimeDelta = TimeDelta::seconds(10);

#[derive(Debug)]
pub(super) struct Provider {
    issuer: String,
    known: RwLock<Option<Known>>,
    /// Held while asking, so that many waiting tokens cause one question.
    asked: Mutex<Option<Asked>>,
}

#[derive(Debug, Clone)]
struct Known {
    keys: Arc<KeySet>,
    /// `None`: given beforehand, never outdated.
    since: Option<DateTime<Utc>>,
}

#[derive(Debug)]
struct Asked {
    at: DateTime<Utc>,
    failure: Option<String>,
}

impl Provider {
    pub(super) fn given(issuer: &str, keys: KeySet) -> Provider {
        Provider::knowing(issuer, Some(Known { keys: Arc::new(keys), since: None }))
    }

    pub(super) fn discovered(issuer: &str) -> Provider {
        Provider::knowing(issuer, None)
    }

    fn knowing(issuer: &str, known: Option<Known>) -> Provider {
        Provider { issuer: issuer.to_owned(), known: RwLock::new(known), asked: Mutex::default() }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The issuer's keys, as fresh as a token with this header needs them.
    pub(super) async fn keys_for(
        &self,
        header: &Header,
        fetcher: &Fetcher,
        now: DateTime<Utc>,
    ) -> Result<Arc<KeySet>, TokenFault> {
        let suffices = |known: &Known| known.is_fresh(now) && known.may_have_signed(header);
        if let Some(known) = self.known().filter(|known| known.since.is_none() || suffices(known)) {
            return Ok(known.keys);
        }
        let outdated = self.known().filter(|known| known.is_usable(now) && known.may_have_signed(header));
        let mut asked = match (self.asked.try_lock(), outdated) {
            (Ok(asked), _) => asked,
            // Outdated keys that fit will do while somebody else asks: a silent issuer slows one request, not all.
            (Err(_), Some(outdated)) => return Ok(outdated.keys),
            (Err(_), None) => self.asked.lock().await,
        };
        // Whoever held the lock before may have brought what is needed.
        if let Some(known) = self.known().filter(suffices) {
            return Ok(known.keys);
        }
        if asked.as_ref().is_none_or(|last| now - last.at >= PAUSE) {
            let answer = read_keys(&self.issuer, fetcher).await;
            if let Err(why) = &answer {
                warn!(issuer = self.issuer, why, "the issuer's keys cannot be read");
            }
            let failure = answer.map(|keys| self.learn(keys, now)).err();
            *asked = Some(Asked { at: now, failure });
        }
        let usable = self.known().filter(|known| known.is_usable(now));
        usable.map(|known| known.keys).ok_or_else(|| TokenFault::IssuerUnavailable {
            issuer: self.issuer.clone(),
            why: asked.as_ref().and_then(|last| last.failure.clone()).unwrap_or_default(),
        })
    }

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(|held| held.into_inner()).clone()
    }

    fn learn(&self, keys: KeySet, now: DateTime<Utc>) {
        let known = Known { keys: Arc::new(keys), since: Some(now) };
        *self.known.write().unwrap_or_else(|held| held.into_inner()) = Some(known);
    }
}

impl Known {
    fn may_have_signed(&self, header: &Header) -> bool {
        !self.keys.candidates(header).is_empty()
    }

    fn is_fresh(&self, now: DateTime<Utc>) -> bool {
        self.since.is_none_or(|since| now - since < FRESH)
    }

    fn is_usable(&self, now: DateTime<Utc>) -> bool {
        self.since.is_none_or(|since| now - since < USABLE)
    }
}

/// The discovery document, then the key set it names.
async fn read_keys(issuer: &str, fetcher: &Fetcher) -> Result<KeySet, String> {
    #[derive(Deserialize)]
    struct Discovery {
        issuer: String,
        jwks_uri: String,
    }
    let document = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let discovery: Discovery = serde_json::from_slice(&fetcher.get(&document).await?)
        .map_err(|_| format!("{document} is not a discovery document"))?;
    if discovery.issuer != issuer {
        return Err(format!("{document} speaks for another issuer"));
    }
    let keys = fetcher.get(&discovery.jwks_uri).await?;
    KeySet::from_json(&keys).map_err(|_| format!("{} is not a key set", discovery.jwks_uri))
}
