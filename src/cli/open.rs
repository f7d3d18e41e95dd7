//! `gpuaas open`: to an instance, by a browser. Its ports are on its node's loopback address: where the platform is on this
//! machine, or a tunnel of ours leads there already, the address opens at once; else the tunnel is made first and lasts until
//! it is ended. That something listens here says nothing: it may be anybody's.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use api_types::{InstanceAccess, InstanceEndpoint};
use clap::Args;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::client::{Client, is_loopback};
use super::output::{self, Format};
use super::pick;
use super::profile::make_folder_of;
use crate::failure::Failure;

/// A port of this machine answers at once or not at all.
const KNOCK: Duration = Duration::from_secs(1);
const BROWSERS: [&str; 2] = ["xdg-open", "open"];

#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The instance's name, its id or the beginning of it
    instance: String,
    /// The endpoint, where it has several [default: the first]
    #[arg(long)]
    endpoint: Option<String>,
    /// Only print the address and the tunnel, which is all that happens away from a terminal
    #[arg(long)]
    print: bool,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    endpoint: InstanceEndpoint,
    /// Whether the address answers on this machine.
    reached_here: bool,
}

pub async fn run(args: &OpenArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let instance = pick::instance(client, &args.instance).await?;
    let path = client.in_project(&format!("/app-instances/{}/access", instance.id))?;
    let access: InstanceAccess = client.get(&path, &[]).await?;
    let (name, names) = (&instance.display_name, || access.endpoints.iter().map(|one| one.name.clone()));
    let mut endpoints = access.endpoints.iter();
    let found = match &args.endpoint {
        Some(wanted) => endpoints.find(|endpoint| endpoint.name == *wanted),
        None => endpoints.next(),
    };
    let endpoint = found.cloned().ok_or_else(|| match args.endpoint {
        Some(_) if !access.endpoints.is_empty() => Failure::not_found(format!(
            "{name} has other endpoints: {}",
            names().collect::<Vec<_>>().join(", ")
        )),
        _ => Failure::conflict(format!("{name} is {}: it is reached nowhere now", instance.status)),
    })?;
    let kept = client.surroundings().state_home.join("gpuaas/tunnels");
    let kept = kept.join(format!("{}-{}", instance.id, endpoint.name));
    let host = endpoint.private_address.rsplit_once(':').map_or("", |(host, _)| host);
    let leads_there = (client.is_here() && is_loopback(host)) || is_ours(&kept, &endpoint.tunnel_command);
    let shown = Shown { reached_here: leads_there && answers(&endpoint.private_address).await, endpoint };
    show(&shown, format)?;
    if args.print || !client.may_ask() {
        return Ok(());
    }
    if shown.reached_here {
        return browse(&shown.endpoint.url).await;
    }
    through_tunnel(&shown.endpoint, &kept).await
}

/// Whether the process that was noted is the tunnel that this command made, and still there.
fn is_ours(kept: &Path, command: &str) -> bool {
    let Ok(process) = fs::read_to_string(kept) else { return false };
    let told = fs::read(format!("/proc/{}/cmdline", process.trim())).unwrap_or_default();
    let runs: Vec<&[u8]> = told.split(|byte| *byte == 0).collect();
    tunnel(command).is_some_and(|words| {
        words[1..].iter().all(|word| runs.contains(&word.as_bytes())) && runs[0].ends_with(b"ssh")
    })
}

/// The address is the data; how to get there is talk.
fn show(shown: &Shown, format: Format) -> Result<(), Failure> {
    let endpoint = &shown.endpoint;
    if format == Format::Table && !shown.reached_here {
        output::say(&format!("it is on {}; this leads there: {}", endpoint.node, endpoint.tunnel_command));
    }
    let here = if shown.reached_here { "yes" } else { "by a tunnel" }.to_owned();
    let row = vec![
        endpoint.url.clone(),
        endpoint.name.clone(),
        endpoint.node.clone(),
        endpoint.health.clone(),
        here,
    ];
    output::print(format, &["url", "endpoint", "node", "health", "reached here"], &[row], shown)
}

async fn answers(address: &str) -> bool {
    matches!(timeout(KNOCK, TcpStream::connect(address)).await, Ok(Ok(_)))
}

async fn browse(url: &str) -> Result<(), Failure> {
    for browser in BROWSERS {
        let mut command = Command::new(browser);
        command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().await.is_ok_and(|status| status.success()) {
            return Ok(());
        }
    }
    output::say("there is no browser to open here: the address above is it");
    Ok(())
}

async fn through_tunnel(endpoint: &InstanceEndpoint, kept: &Path) -> Result<(), Failure> {
    if answers(&endpoint.private_address).await {
        return Err(Failure::conflict(format!(
            "something else listens at {} on this machine, so the tunnel cannot begin there",
            endpoint.private_address
        )));
    }
    let words = tunnel(&endpoint.tunnel_command).ok_or_else(|| {
        Failure::usage("the tunnel is none that this command knows: look at it, then run it yourself")
    })?;
    let failed = |error: std::io::Error| Failure::server(format!("ssh does not run: {error}"));
    let mut ssh: Child = Command::new("ssh")
        .args(["-o", "ExitOnForwardFailure=yes"])
        .args(&words[1..])
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    while !answers(&endpoint.private_address).await {
        if let Some(status) = ssh.try_wait().map_err(failed)? {
            return Err(Failure::server(format!("the tunnel did not come up: ssh ended with {status}")));
        }
        sleep(Duration::from_millis(200)).await;
    }
    // For the next command, so that it goes the same way. Without the note it makes a tunnel of its own.
    if let (Ok(()), Some(process)) = (make_folder_of(kept), ssh.id()) {
        let _ = fs::write(kept, process.to_string());
    }
    output::say("the tunnel is open until you press Ctrl-C");
    browse(&endpoint.url).await?;
    let ended = ssh.wait().await.map(|_| ()).map_err(failed);
    let _ = fs::remove_file(kept);
    ended
}

/// What the platform tells is run only if it is a plain tunnel: one forwarded port, one host, and no option besides.
fn tunnel(command: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = command.split(' ').collect();
    let plain = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    match words.as_slice() {
        ["ssh", "-N", "-L", forward, host] if plain(forward, ".:") && plain(host, ".-_@:") => Some(words),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_tunnel_is_run() {
        assert!(tunnel("ssh -N -L 30000:127.0.0.1:30000 gpu-1.example").is_some());
        for bad in [
            "ssh -N -L 30000:127.0.0.1:30000 -oProxyCommand=evil",
            "ssh -N -L 30000:127.0.0.1:30000 host; evil",
            "ssh -N -L 30000:127.0.0.1:30000 host evil",
            "sh -c evil",
            "",
        ] {
            assert!(tunnel(bad).is_none(), "{bad}");
        }
    }
}
