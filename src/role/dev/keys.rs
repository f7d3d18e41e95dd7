//! The keys of `gpuaas dev`: those the configuration names, or its own, made on the first start and kept in the data
//! directory. It believes its built-in issuer, and any other that is configured.

use clients::seal::Sealer;
use clients::signing::{KeyFault, SigningKey, SigningKeys};
use domain::Secret;

use super::data::DataDir;
use super::issuer::Issuer;
use crate::config::Auth;
use crate::failure::Failure;

const SIGNING: &str = "signing-keys.pem";
const SEALING: &str = "sealing-keys";

/// The same configuration with everything in it that serving needs.
pub fn complete(auth: &Auth, data: &DataDir, issuer: &Issuer, server: &str) -> Result<Auth, Failure> {
    let mut auth = auth.clone();
    // The first is where people sign in to the console.
    auth.issuers.insert(0, issuer.trust());
    auth.console_client_id = None;
    auth.public_url.get_or_insert_with(|| server.to_owned());
    let unusable = |name: &str, why: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot use {}: {why}", data.path.join(name).display()))
    };
    if auth.signing_keys.is_none() {
        let pem = data.secret(SIGNING, || SigningKey::generate()?.private_key_pem())?;
        auth.signing_keys = Some(SigningKeys::from_pem(pem.expose()).map_err(|why| unusable(SIGNING, &why))?);
    }
    if auth.sealer.is_none() {
        let made = || Ok::<Secret<String>, KeyFault>(Sealer::generate_line("dev"));
        let lines = data.secret(SEALING, made)?;
        auth.sealer = Some(Sealer::from_lines(lines.expose()).map_err(|why| unusable(SEALING, &why))?);
    }
    Ok(auth)
}
