//! Hello: the smallest useful app. It serves a page and a health check, and where the platform gave it an identity it
//! reports that it lives and how many requests it answered. It needs no files, no shell and no libraries.

#![expect(clippy::disallowed_methods, reason = "an app has its own environment and clock")]
#![expect(clippy::print_stderr, reason = "an app's log is its standard error")]

mod call;
mod identity;
mod report;
mod web;

use std::env;
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::identity::Identity;
use crate::report::Reporter;
use crate::web::Site;

const ADDRESS: &str = "0.0.0.0:8080";

fn main() -> ExitCode {
    let greeting = env::var("HELLO_GREETING").unwrap_or_else(|_| "Hello from GPUaaS".to_owned());
    let identity = Identity::from_environment(|name| env::var(name).ok());
    let instance = identity.as_ref().map(|identity| identity.instance_id.clone());
    let site = Arc::new(Site::new(greeting, instance));
    let listener = match TcpListener::bind(ADDRESS) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("hello: cannot listen on {ADDRESS}: {error}");
            return ExitCode::FAILURE;
        }
    };
    eprintln!("hello: listening on {ADDRESS}");
    let reporter = identity.map(|identity| Reporter::start(identity, site.clone()));
    thread::spawn(move || web::serve(&listener, &site));
    // As the first process of a container it gets no signal that it does not ask for.
    match Signals::new([SIGTERM, SIGINT]) {
        Ok(mut signals) => {
            signals.forever().next();
        }
        Err(error) => {
            eprintln!("hello: cannot wait for signals: {error}");
            return ExitCode::FAILURE;
        }
    }
    eprintln!("hello: stopping");
    if let Some(reporter) = reporter {
        reporter.finish();
    }
    ExitCode::SUCCESS
}
