//! `gpuaas open`: to an instance, by a browser. Its ports are on its node's loopback address: where that is this machine, or a
//! tunnel leads there already, the address opens at once; else the tunnel is made first and lasts until it is ended.

use std::process::Stdio;
use std::time::Duration;

use api_types::{InstanceAccess, InstanceEndpoint};
use clap::Args;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::output::{self, Format};
use super::pick;
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
    let shown = Shown { reached_here: answers(&endpoint.private_address).await, endpoint };
    show(&shown, format)?;
    if args.print || !client.may_ask() {
        return Ok(());
    }
    if shown.reached_here {
        return browse(&shown.endpoint.url).await;
    }
    through_tunnel(&shown.endpoint).await
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

async fn through_tunnel(endpoint: &InstanceEndpoint) -> Result<(), Failure> {
    let words = tunnel(&endpoint.tunnel_command).ok_or_else(|| {
        Failure::usage("the tunnel is none that this command knows: look at it, then run it yourself")
    })?;
    let failed = |error: std::io::Error| Failure::server(format!("ssh does not run: {error}"));
    let mut ssh: Child = Command::new("ssh").args(&words[1..]).kill_on_drop(true).spawn().map_err(failed)?;
    while !answers(&endpoint.private_address).await {
        if let Some(status) = ssh.try_wait().map_err(failed)? {
            return Err(Failure::server(format!("the tunnel did not come up: ssh ended with {status}")));
        }
        sleep(Duration::from_millis(200)).await;
    }
    output::say("the tunnel is open until you press Ctrl-C");
    browse(&endpoint.url).await?;
    ssh.wait().await.map(|_| ()).map_err(failed)
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
