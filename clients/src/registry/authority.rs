//! Who signs registry tokens: a certificate authority that the registry trusts, and a leaf of it that signs for a day.
//!
//! The authority is one P-256 key that all processes share; its certificate follows from it and is told to the registry
//! once. Leaves are made by each process and change without the registry's knowledge: a token brings its leaf along.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use domain::Secret;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use serde::Serialize;

use crate::clock::Clock;

const LEAF_LIFETIME: TimeDelta = TimeDelta::hours(24);
/// A leaf signs this long; the rest of its life its last tokens are still good.
const LEAF_IN_USE: TimeDelta = TimeDelta::hours(12);
/// Clocks of other machines may be this far behind.
const LEEWAY: TimeDelta = TimeDelta::minutes(10);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityFault {
    #[error("the text is not a P-256 private key in PKCS#8 PEM form (-----BEGIN PRIVATE KEY-----)")]
    NotAPrivateKey,
    #[error("a certificate or token cannot be made: {0}")]
    Unusable(String),
}

impl From<rcgen::Error> for AuthorityFault {
    fn from(error: rcgen::Error) -> AuthorityFault {
        AuthorityFault::Unusable(error.to_string())
    }
}

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    clock: Arc<dyn Clock>,
    leaf: Mutex<Option<Arc<Leaf>>>,
}

struct Leaf {
    header: Header,
    key: EncodingKey,
    until: DateTime<Utc>,
}

impl Authority {
    /// A key for [`Authority::from_pem`].
    pub fn generate_key() -> Result<Secret<String>, AuthorityFault> {
        Ok(Secret::new(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?.serialize_pem()))
    }

    pub fn from_pem(pem: &str, clock: Arc<dyn Clock>) -> Result<Authority, AuthorityFault> {
        let key = KeyPair::from_pem(pem.trim()).map_err(|_| AuthorityFault::NotAPrivateKey)?;
        if !key.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err(AuthorityFault::NotAPrivateKey);
        }
        Ok(Authority { issuer: Issuer::new(authority_params(), key), clock, leaf: Mutex::default() })
    }

    /// What the registry must trust (`auth.token.rootcertbundle`). Its signature differs each time; its key and name, which
    /// are what counts, never do.
    pub fn certificate(&self) -> Result<String, AuthorityFault> {
        Ok(authority_params().self_signed(self.issuer.key())?.pem())
    }

    /// A token with these claims, which brings the certificate of its signer.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Result<String, AuthorityFault> {
        let leaf = self.leaf()?;
        jsonwebtoken::encode(&leaf.header, claims, &leaf.key)
            .map_err(|error| AuthorityFault::Unusable(error.to_string()))
    }

    fn leaf(&self) -> Result<Arc<Leaf>, AuthorityFault> {
        let now = self.clock.now();
        let mut kept = self.leaf.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.as_ref().filter(|leaf| now < leaf.until) {
            Some(leaf) => Ok(Arc::clone(leaf)),
            None => Ok(Arc::clone(kept.insert(Arc::new(self.new_leaf(now)?)))),
        }
    }

    fn new_leaf(&self, now: DateTime<Utc>) -> Result<Leaf, AuthorityFault> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = named("gpuaas registry token signer");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.not_before = date_time_ymd(1970, 1, 1) + since_epoch(now - LEEWAY);
        params.not_after = date_time_ymd(1970, 1, 1) + since_epoch(now + LEAF_LIFETIME);
        let certificate = params.signed_by(&key, &self.issuer)?;
        let mut header = Header::new(Algorithm::ES256);
        header.x5c = Some(vec![BASE64_STANDARD.encode(certificate.der())]);
        let key = EncodingKey::from_ec_pem(key.serialize_pem().as_bytes())
            .map_err(|error| AuthorityFault::Unusable(error.to_string()))?;
        Ok(Leaf { header, key, until: now + LEAF_IN_USE })
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// The same on every process and at every start, so that all of them speak for one authority.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = named("gpuaas registry token authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2056, 1, 1);
    params
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn since_epoch(at: DateTime<Utc>) -> Duration {
    Duration::from_secs(u64::try_from(at.timestamp()).unwrap_or_default())
}
