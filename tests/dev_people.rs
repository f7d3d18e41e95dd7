//! Signing in: the people of `gpuaas dev`, and the keys without which nobody is served.

use serde_json::json;

use crate::support::cluster::Folder;
use crate::support::process::{Dev, gpuaas, run};

fn status(answer: &str) -> &str {
    answer.split_whitespace().nth(1).unwrap_or_default()
}

#[test]
fn the_seeded_people_sign_in_and_hold_their_roles() {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
    let told: Vec<_> =
        dev.ready["users"].as_array().unwrap().iter().map(|user| user["username"].clone()).collect();
    assert_eq!(told, ["admin", "project-admin", "operator", "publisher", "viewer"]);
    assert_eq!(
        dev.ready["users"][0],
        json!({ "username": "admin", "password": "admin", "roles": ["platform_superadmin"] })
    );

    let workflows = format!("/api/v1/projects/{}/workflows", dev.ready["project_id"].as_str().unwrap());
    assert_eq!(status(&dev.get(&workflows)), "401");
    for user in &told {
        let token = dev.token(user.as_str().unwrap());
        assert_eq!(status(&dev.get_as(&workflows, &token)), "200", "{user}");
        let expected = if user == "admin" { "200" } else { "403" };
        assert_eq!(status(&dev.get_as("/api/v1/admin/workflows", &token)), expected, "{user}");
    }
}

#[test]
fn the_nightly_check_is_among_the_schedules_an_administrator_sees() {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
    let answer = dev.get_as("/api/v1/admin/schedules", &dev.token("admin"));
    let page: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let items = page["items"].as_array().unwrap();
    let nightly = items.iter().find(|schedule| schedule["name"] == "check_promises").expect("it is declared");
    assert_eq!(
        (&nightly["kind"], &nightly["cron"]),
        (&json!("platform.check_promises"), &json!("0 0 3 * * *")),
        "{page}"
    );
}

#[test]
fn people_stay_themselves_when_dev_moves_to_another_port() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let me = |dev: &Dev| {
        let answer = dev.get_as("/api/v1/me", &dev.token("operator"));
        let body: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["id"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    };
    let dev = Dev::start(&data, &[]);
    let before = (me(&dev), dev.ready["api_url"].clone());
    dev.stop();
    let dev = Dev::start(&data, &[]);
    assert_ne!(dev.ready["api_url"], before.1, "each start takes a free port");
    assert_eq!(me(&dev), before.0);
}

#[test]
fn the_issuer_says_no_in_its_own_words() {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
    let answer = dev.get("/realms/gpuaas/protocol/openid-connect/auth");
    assert_eq!(status(&answer), "400");
    assert!(answer.contains("<!doctype html>"), "a page for a person, not our envelope: {answer}");
}

#[test]
fn dev_never_listens_where_others_could_use_its_well_known_passwords() {
    let folder = Folder::new();
    let data = folder.0.to_str().unwrap();
    let said = run(&["dev", "--data-dir", data, "--set", "server.listen=0.0.0.0:0"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("well-known passwords"), "{said:?}");
}

#[test]
fn serve_refuses_to_start_where_nobody_could_sign_in() {
    let serve = ["serve", "--database-url", "postgres://app@127.0.0.1:1/none"];
    let said = run(&serve);
    assert_eq!(said.code, Some(1));
    for missing in ["auth.issuers", "auth.public_url", "auth.signing_keys", "auth.sealing_keys"] {
        assert!(said.stderr.contains(missing), "{said:?}");
    }
    let everywhere = [&serve[..], &["--listen", "0.0.0.0:0", "--set", "auth.allow_nobody=true"]].concat();
    let said = run(&everywhere);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("loopback address only"), "{said:?}");
}

#[test]
fn config_show_hides_keys() {
    let mut command = gpuaas(&["config", "show", "-o", "json"]);
    let key = clients::seal::Sealer::generate_line("k1");
    let output = command.env("GPUAAS_AUTH_SEALING_KEYS", key.expose()).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("auth.sealing_keys") && shown.contains("***"), "{shown}");
    assert!(!shown.contains(key.expose().split_whitespace().nth(1).unwrap()));
}
