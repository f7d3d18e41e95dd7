//! `gpuaas receipt`: that an instance left nothing behind, signed by its node and by the platform. `verify` checks one that
//! was kept, without asking anybody: whoever pins the platform's key need not believe the file.

use std::fs;
use std::path::PathBuf;

use api_types::TeardownReceipt;
use clap::{Args, Subcommand};
use node_protocol::{Evidence, PublicKey, Receipt, Signed};
use serde::Serialize;

use super::client::Client;
use super::output::{self, Format};
use super::pick;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct ReceiptArgs {
    #[command(subcommand)]
    command: Option<ReceiptCommand>,
    /// The instance's name, its id or the beginning of it; -o json is what `verify` reads
    instance: Option<String>,
}

#[derive(Debug, Subcommand)]
enum ReceiptCommand {
    /// Check a receipt that was kept as JSON, without asking anybody
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
struct VerifyArgs {
    file: PathBuf,
    /// The platform's key, by its thumbprint: no other counts
    #[arg(long, value_name = "THUMBPRINT", conflicts_with = "key")]
    key_id: Option<String>,
    /// The platform's key, as PEM: no other counts
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

#[derive(Serialize)]
struct Checked {
    valid: bool,
    key_id: String,
    /// Whether the key is the one that was asked for.
    pinned: bool,
    receipt: Receipt,
    evidence: Evidence,
}

impl ReceiptArgs {
    /// What needs no platform is done without one.
    pub fn offline(&self, format: Format) -> Option<Result<(), Failure>> {
        let ReceiptCommand::Verify(args) = self.command.as_ref()?;
        Some(verify(args, format))
    }
}

pub async fn run(args: &ReceiptArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let Some(text) = &args.instance else { return Err(Failure::usage("which instance?")) };
    let instance = pick::instance(client, text).await?;
    let path = client.in_project(&format!("/app-instances/{}/receipt", instance.id))?;
    let receipt: TeardownReceipt = client.get(&path, &[]).await?;
    match format {
        Format::Json | Format::Yaml => output::data(format, &receipt),
        Format::Name => output::text(&format!("{}\n", instance.id)),
        Format::Table | Format::Csv => show(&check(&receipt, None)?, format),
    }
}

fn verify(args: &VerifyArgs, format: Format) -> Result<(), Failure> {
    let unreadable =
        |path: &PathBuf, why: &dyn std::fmt::Display| Failure::usage(format!("{}: {why}", path.display()));
    let text = |path: &PathBuf| fs::read_to_string(path).map_err(|error| unreadable(path, &error));
    let receipt: TeardownReceipt = serde_json::from_str(&text(&args.file)?)
        .map_err(|error| unreadable(&args.file, &format!("is no receipt: {error}")))?;
    let pin = match (&args.key, &args.key_id) {
        (Some(path), _) => {
            Some(PublicKey::from_pem(&text(path)?).map_err(|fault| unreadable(path, &fault))?.id())
        }
        (None, id) => id.clone(),
    };
    let checked = check(&receipt, pin.as_deref())?;
    if !checked.pinned && format == Format::Table {
        output::say("the key is the one in the receipt itself: --key-id or --key says whose it must be");
    }
    show(&checked, format)
}

/// Both signatures, and that they speak of the same instance on the same node, which showed that nothing remains.
fn check(told: &TeardownReceipt, pin: Option<&str>) -> Result<Checked, Failure> {
    let refused = |why: String| Failure::failed(format!("the receipt proves nothing: {why}"));
    let key = PublicKey::from_pem(&told.public_key).map_err(|fault| refused(fault.to_string()))?;
    if key.id() != told.key_id || pin.is_some_and(|pin| pin != told.key_id) {
        return Err(refused(format!("it is signed by another key, {}", key.id())));
    }
    let signed = Signed {
        key_id: told.key_id.clone(),
        payload: told.payload.clone(),
        signature: told.signature.clone(),
    };
    let receipt: Receipt =
        signed.open(&key).map_err(|fault| refused(format!("of the platform's word, {fault}")))?;
    let evidence = receipt.evidence().map_err(|fault| refused(format!("of the node's word, {fault}")))?;
    if !evidence.is_clean() {
        return Err(refused(format!("these remain: {}", evidence.remaining.join(", "))));
    }
    Ok(Checked { valid: true, key_id: told.key_id.clone(), pinned: pin.is_some(), receipt, evidence })
}

fn show(checked: &Checked, format: Format) -> Result<(), Failure> {
    let (receipt, evidence) = (&checked.receipt, &checked.evidence);
    let or_nothing = |list: &[String]| if list.is_empty() { "nothing".to_owned() } else { list.join(" ") };
    let rows: Vec<Vec<String>> = [
        ("instance", receipt.instance_id.to_string()),
        ("project", receipt.project_id.to_string()),
        ("node", receipt.node_id.to_string()),
        ("driver", evidence.driver.clone()),
        ("seen at", evidence.observed_at.format("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ("removed", or_nothing(&evidence.removed)),
        ("remains", "nothing".to_owned()),
        ("given back", or_nothing(&receipt.released)),
        ("signed by", checked.key_id.clone()),
    ]
    .into_iter()
    .map(|(name, value)| vec![name.to_owned(), value])
    .collect();
    match format {
        Format::Name => output::text(&format!("{}\n", receipt.instance_id)),
        _ => output::print(format, &["receipt", "valid"], &rows, checked),
    }
}
