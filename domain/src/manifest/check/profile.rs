//! The runtime profile: ports, health, environment, launch parameters, packages and smoke tests fit each other.

use super::unique;
use crate::manifest::author::Author;
use crate::manifest::check::Findings;
use crate::manifest::package::package_problem;
use crate::manifest::spot::Spot;

/// The platform's own variables.
const RESERVED: &str = "GPUAAS_";
/// By this a node says which GPUs a container has.
const OF_THE_NODE: &str = "NVIDIA_VISIBLE_DEVICES";

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let profile = author.profile();
    fields_of_kind(&profile, found);
    ports(&profile, found);
    health(&profile, found);
    environment(author, found);
    launch_parameters(author, found);
    packages(&profile, found);
    smoke(author, found);
    metering(author, found);
}

/// Each kind has fields that mean nothing to the other.
fn fields_of_kind(profile: &Spot<'_>, found: &mut Findings) {
    let (only_other, other): (&[&str], &str) = match profile.at("kind").text() {
        Some("launchable_oci") => (&["renderer", "topology"], "docker_compose"),
        Some("docker_compose") => (&["command", "packages"], "launchable_oci"),
        _ => return,
    };
    for name in only_other.iter().filter(|name| profile.at(name).exists()) {
        found.refuse(profile.at(name).misplaced(format!("is for profiles of kind `{other}`")));
    }
    if profile.at("kind").is("docker_compose") && !profile.at("renderer").exists() {
        found.refuse(profile.at("renderer").problem("is required: the platform renders the Compose file"));
    }
}

fn ports(profile: &Spot<'_>, found: &mut Findings) {
    let ports = profile.at("ports").items();
    let numbers = ports
        .iter()
        .filter_map(|port| Some((port.at("container").number()?.to_string(), port.at("container"))));
    unique(numbers, "is a port above", found);
    let names = ports.iter().filter_map(|port| Some((port.at("name").text()?.to_owned(), port.at("name"))));
    unique(names, "is the name of a port above", found);
}

fn declares(profile: &Spot<'_>, number: u64) -> bool {
    profile.at("ports").items().iter().any(|port| port.at("container").number() == Some(number))
}

/// A port that health or a smoke test asks: one that is declared, or the first.
fn asked_port(profile: &Spot<'_>, port: &Spot<'_>, asker: &Spot<'_>, found: &mut Findings) {
    match port.number() {
        Some(number) if !declares(profile, number) => {
            found.refuse(port.problem("is not among runtime_profile.ports"));
        }
        None if !port.exists() && profile.at("ports").items().is_empty() => {
            found.refuse(asker.problem("needs a port, and runtime_profile.ports has none"));
        }
        _ => {}
    }
}

fn health(profile: &Spot<'_>, found: &mut Findings) {
    let health = profile.at("health");
    let kind = health.at("kind");
    match kind.text() {
        Some("http" | "tcp") => asked_port(profile, &health.at("port"), &kind, found),
        Some("heartbeat") if health.at("port").exists() => {
            found.refuse(
                health.at("port").misplaced("means nothing to a heartbeat: the app calls the platform"),
            );
        }
        _ => {}
    }
    if health.at("path").exists() && matches!(kind.text(), Some("tcp" | "heartbeat")) {
        found.refuse(health.at("path").misplaced("is for checks of kind `http`"));
    }
    let seconds = |name: &str, default: u64| health.at(name).number().unwrap_or(default);
    let (interval, timeout) = (seconds("interval_seconds", 10), seconds("timeout_seconds", 5));
    if timeout > interval {
        found.refuse(
            health
                .at("timeout_seconds")
                .problem(format!("must not be longer than interval_seconds, which is {interval}")),
        );
    }
}

/// Every variable has one source, and none is the platform's or the node's.
fn environment(author: &Author<'_>, found: &mut Findings) {
    let profile = author.profile();
    let fixed = profile.at("env").items().into_iter().map(|item| item.at("name"));
    let launched = profile.at("launch_parameters").items().into_iter().map(|item| item.at("env"));
    let classes = author.version.at("runtime_requirements").at("credential_classes").items();
    let secrets = classes.iter().map(|item| item.at("env"));
    let names: Vec<Spot<'_>> =
        fixed.chain(launched).chain(secrets).filter(|spot| spot.text().is_some()).collect();
    for spot in &names {
        if spot.text().is_some_and(|name| name.to_ascii_uppercase().starts_with(RESERVED)) {
            found.refuse(
                spot.problem(format!("must not begin with {RESERVED}: those are the platform's own")),
            );
        }
    }
    for spot in names.iter().filter(|spot| spot.is(OF_THE_NODE)) {
        let problem = format!(
            "must not be {OF_THE_NODE}: the node says which GPUs a container has, by resources.gpu_count"
        );
        found.refuse(spot.problem(problem));
    }
    let named = names.into_iter().filter_map(|spot| Some((spot.text()?.to_owned(), spot)));
    unique(named, "is a variable that is set above", found);
    let class_names =
        classes.iter().filter_map(|item| Some((item.at("class").text()?.to_owned(), item.at("class"))));
    unique(class_names, "is a class above", found);
    for item in profile.at("env").items() {
        let secret = |name: &str| {
            ["PASSWORD", "SECRET", "TOKEN", "API_KEY", "PRIVATE_KEY"].iter().any(|word| name.ends_with(word))
        };
        let has_value = item.at("value").text().is_some_and(|value| !value.is_empty());
        if has_value && item.at("name").text().is_some_and(|name| secret(&name.to_ascii_uppercase())) {
            found.warn(item.at("value").problem(
                "looks like a secret, and everybody who reads the catalog sees it; use credential_classes",
            ));
        }
    }
}

fn launch_parameters(author: &Author<'_>, found: &mut Findings) {
    let config = author.version.at("config_schema").at("properties");
    let parameters = author.profile().at("launch_parameters").items();
    for parameter in &parameters {
        let name = parameter.at("name");
        if name.text().is_some_and(|name| !config.at(name).exists()) {
            found.refuse(name.problem("is not a field of config_schema"));
        }
        match (parameter.at("env").exists(), parameter.at("argument").exists()) {
            (false, false) => found.refuse(parameter.problem("must have `env` or `argument`")),
            (true, true) => found.refuse(parameter.problem("must have either `env` or `argument`")),
            _ => {}
        }
    }
    let arguments =
        parameters.iter().filter_map(|p| Some((p.at("argument").text()?.to_owned(), p.at("argument"))));
    unique(arguments, "is an argument above", found);
}

fn packages(profile: &Spot<'_>, found: &mut Findings) {
    for package in profile.at("packages").items() {
        if let Some(why) = package.text().and_then(package_problem) {
            found.refuse(package.problem(why));
        }
    }
}

fn smoke(author: &Author<'_>, found: &mut Findings) {
    let tests = author.version.at("smoke").items();
    for test in &tests {
        asked_port(&author.profile(), &test.at("port"), test, found);
        if test.at("body").exists() && !test.at("method").is("POST") {
            found.refuse(test.at("body").misplaced("is for the method `POST`"));
        }
    }
    let named = tests.iter().filter_map(|test| Some((test.at("name").text()?.to_owned(), test.at("name"))));
    unique(named, "is the name of a test above", found);
}

fn metering(author: &Author<'_>, found: &mut Findings) {
    let metering = author.version.at("metering");
    if metering.at("kind").is("custom") && !metering.at("unit").exists() {
        found.refuse(metering.at("unit").problem("is required where the kind is `custom`"));
    }
}
