//! What an operator puts to work: alert rules that fire when they should, a dashboard that asks for what there is, and a page
//! for every alert.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::scraped;
use crate::http::Http;
use crate::support::story::Story;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn promtool(arguments: &[&str]) {
    let said =
        Command::new("promtool").args(arguments).current_dir(root().join("deploy/prometheus")).output();
    let said = said.expect("promtool of Debian's prometheus");
    let words = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(said.status.success(), "{words}");
}

/// The values of a field in a file of rules.
fn values<'a>(rules: &'a str, field: &str) -> Vec<&'a str> {
    rules
        .lines()
        .filter_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix(field))
        .map(str::trim)
        .collect()
}

#[test]
fn the_alert_rules_are_valid_and_each_fires_when_it_should_and_not_before() {
    promtool(&["check", "rules", "alerts.yaml"]);
    promtool(&["test", "rules", "alerts.test.yaml"]);
    let (rules, tests) = (read("deploy/prometheus/alerts.yaml"), read("deploy/prometheus/alerts.test.yaml"));
    let named: BTreeSet<&str> = values(&rules, "alert: ").into_iter().collect();
    let tested: BTreeSet<&str> = values(&tests, "name: ").into_iter().collect();
    assert_eq!(named, tested, "an alert without a test, or a test without its alert");
}

#[test]
fn every_alert_leads_to_a_page_that_starts_from_a_correlation_id() {
    let rules = read("deploy/prometheus/alerts.yaml");
    let links = values(&rules, "runbook_url: ");
    assert_eq!(links.len(), values(&rules, "alert: ").len());
    let mut pages = BTreeSet::new();
    for link in links {
        let (page, heading) = link.split_once('#').expect("a place on the page");
        let text = read(page);
        let headings: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("## ")).map(anchor).collect();
        assert!(headings.iter().any(|one| one == heading), "{link} is none of {headings:?}");
        assert_eq!(headings[0], "start-from-the-correlation-id", "{page}");
        assert!(text.contains("gpuaas trace $CORRELATION_ID"), "{page}");
        pages.insert(page.to_owned());
    }
    let all: BTreeSet<String> = std::fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|file| format!("docs/runbooks/{}", file.unwrap().file_name().to_string_lossy()))
        .collect();
    assert_eq!(pages, all, "a page that no alert leads to");
    assert_eq!(all.len(), 5);
}

/// As the pages of a repository are linked.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-").replace(|c: char| !c.is_alphanumeric() && c != '-', "")
}

/// The links between the pages lead somewhere, too.
#[test]
fn the_pages_refer_to_what_there_is() {
    for page in std::fs::read_dir(root().join("docs/runbooks")).unwrap() {
        let text = std::fs::read_to_string(page.unwrap().path()).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { text.clone() } else { read(&format!("docs/runbooks/{file}")) };
            let there = place.is_empty()
                || target
                    .lines()
                    .filter_map(|line| line.strip_prefix("## "))
                    .any(|line| anchor(line) == place);
            assert!(there, "{link}");
        }
    }
}

/// Every word of a text that is the name of one of our measures.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("gpuaas_")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_dashboard_and_alerts_ask_for_is_there() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    // Requests are measured once there are any.
    http.get("/livez").await.with(200);
    let page = scraped(&http).await;
    let mut there = BTreeSet::new();
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        there.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    let dashboard = read("deploy/grafana/gpuaas.json");
    let parsed: Value = serde_json::from_str(&dashboard).unwrap();
    assert!(parsed["panels"].as_array().unwrap().len() > 30);
    let rules = read("deploy/prometheus/alerts.yaml");
    let pages: Vec<String> = std::fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    for text in [&dashboard, &rules].into_iter().chain(&pages) {
        for name in named(text) {
            assert!(there.contains(name), "{name} is not measured; there are {there:#?}");
        }
    }
    // And nothing is measured that nobody looks at.
    let shown = named(&dashboard);
    let unseen: Vec<&String> = there
        .iter()
        .filter(|name| !["_sum", "_count"].iter().any(|suffix| name.ends_with(suffix)))
        .filter(|name| !shown.contains(name.as_str()))
        .collect();
    assert!(unseen.is_empty(), "{unseen:?}");
    story.end().await;
}
