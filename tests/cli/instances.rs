//! An app from the shell: found, entitled, planned, deployed, changed and ended, on a pipe.

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use serde_json::{Value, json};

use super::{Running, Shell, told};
use crate::http::Listening;
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};
use crate::support::process::Said;

/// A platform with one node of four GPUs, behind a port, and people at shells.
pub struct Town {
    pub platform: Platform,
    pub driver: Simulated,
    agent: RunningAgent,
    server: Listening,
}

impl Town {
    pub async fn new() -> Town {
        let platform = Platform::new().await;
        let driver = Simulated::new();
        let (agent, _) = platform.node("gpu-1", &driver, 4).await;
        let server = platform.http.listen().await;
        Town { platform, driver, agent, server }
    }

    pub fn shell(&self, username: &str) -> Shell {
        Shell::at(self.server.address, self.platform.http.acting(username).token())
    }

    /// Somebody whom nobody knows.
    pub fn stranger(&self) -> Shell {
        Shell::at(self.server.address, "garbage")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// The next version, with a word to configure.
    pub async fn version(&self) -> String {
        self.platform.version(&profile(PORT, 30)).await
    }

    pub async fn end(self) {
        self.server.close().await;
        self.agent.end().await;
        self.platform.end().await;
    }
}

pub fn answer(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_are_listed_and_explained_and_projects_entitled_to_them() {
    let town = Town::new().await;
    let (operator, admin) = (town.shell("operator"), town.shell("project-admin"));
    town.version().await;
    insta::assert_snapshot!("apps_table", told(&operator.ask(&["apps"]).await));
    insta::assert_snapshot!("apps_json", told(&operator.ask(&["apps", "-o", "json"]).await));
    insta::assert_snapshot!("apps_one_table", told(&operator.ask(&["apps", "hello"]).await));
    insta::assert_snapshot!("apps_one_json", told(&operator.ask(&["apps", "hello", "-o", "json"]).await));
    insta::assert_snapshot!("apps_missing", told(&operator.ask(&["apps", "nothing"]).await));

    let off = ["entitle", "hello", "--off", "--reason", "too dear"];
    insta::assert_snapshot!("entitle_off_table", told(&admin.ask(&off).await));
    insta::assert_snapshot!("apps_none", told(&operator.ask(&["apps"]).await));
    insta::assert_snapshot!("apps_all", told(&operator.ask(&["apps", "--all"]).await));
    insta::assert_snapshot!("apps_one_unentitled", told(&operator.ask(&["apps", "hello"]).await));
    insta::assert_snapshot!("up_unentitled", told(&operator.ask(&["up", "hello"]).await));
    insta::assert_snapshot!("entitle_json", told(&admin.ask(&["entitle", "hello", "-o", "json"]).await));
    insta::assert_snapshot!("entitle_denied", told(&operator.ask(&["entitle", "hello"]).await));
    insta::assert_snapshot!(
        "entitle_denied_json",
        told(&operator.ask(&["entitle", "hello", "-o", "json"]).await)
    );
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_shows_steps_and_placement_and_does_nothing() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    insta::assert_snapshot!("plan_table", told(&operator.ask(&["plan", "hello", "--gpus", "2"]).await));
    insta::assert_snapshot!("plan_json", told(&operator.ask(&["plan", "hello", "-o", "json"]).await));
    insta::assert_snapshot!("plan_unplaced", told(&operator.ask(&["plan", "hello", "--gpus", "9"]).await));
    insta::assert_snapshot!(
        "plan_unplaced_json",
        told(&operator.ask(&["plan", "hello", "--gpus", "9", "-o", "json"]).await)
    );
    insta::assert_snapshot!(
        "plan_no_instance",
        told(&operator.ask(&["plan", "hello", "--action", "down"]).await)
    );
    assert_eq!(operator.ask(&["ps", "--all", "-o", "name"]).await.stdout, "", "nothing was done");
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_deployed_changed_and_ended() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    let old = town.version().await;
    insta::assert_snapshot!("ps_empty", told(&operator.ask(&["ps"]).await));
    insta::assert_snapshot!("up_table", told(&operator.ask(&["up", "hello"]).await));
    let second = answer(&operator.ask(&["up", "hello", "--gpus", "1", "-o", "json"]).await);
    assert_eq!((&second["display_name"], &second["status"]), (&json!("hello-2"), &json!("running")));
    assert_eq!(second["endpoints"][0]["url"], "http://127.0.0.1:30001");
    insta::assert_snapshot!("ps_table", told(&operator.ask(&["ps"]).await));
    insta::assert_snapshot!("ps_json", told(&operator.ask(&["ps", "-o", "json"]).await));

    let new = town.version().await;
    insta::assert_snapshot!(
        "plan_upgrade",
        told(&operator.ask(&["plan", "hello", "--action", "upgrade"]).await)
    );
    insta::assert_snapshot!("upgrade_table", told(&operator.ask(&["upgrade", "hello"]).await));
    insta::assert_snapshot!("rollback_table", told(&operator.ask(&["rollback", "hello"]).await));
    let forward = answer(&operator.ask(&["upgrade", "hello", "--version", &new, "-o", "json"]).await);
    assert_eq!((&forward["version"], &forward["workflow"]["status"]), (&json!(new), &json!("succeeded")));
    let back = answer(&operator.ask(&["rollback", "hello", "--version", &old, "-o", "json"]).await);
    assert_eq!(back["version"], json!(old));
    insta::assert_snapshot!("down_table", told(&operator.ask(&["down", "hello"]).await));
    let id = second["id"].as_str().unwrap();
    let ended = answer(&operator.ask(&["down", id, "-o", "json"]).await);
    assert_eq!((&ended["status"], &ended["endpoints"]), (&json!("decommissioned"), &json!([])));
    let again = answer(&operator.ask(&["down", id, "-o", "json"]).await);
    assert_eq!(again["workflow"]["id"], ended["workflow"]["id"], "it is the same end");
    assert_eq!(operator.ask(&["ps", "-o", "name"]).await.stdout, "");
    assert_eq!(operator.ask(&["ps", "--all", "-o", "name"]).await.stdout.lines().count(), 2);
    insta::assert_snapshot!("upgrade_gone", told(&operator.ask(&["upgrade", "hello"]).await));
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_that_fails_says_where_and_why_and_how_to_go_on() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    town.driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    insta::assert_snapshot!("up_failed", told(&operator.ask(&["up", "hello"]).await));
    insta::assert_snapshot!("ps_failed", told(&operator.ask(&["ps"]).await));
    town.driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let other = ["up", "hello", "--name", "other", "-o", "json"];
    insta::assert_snapshot!("up_failed_json", told(&operator.ask(&other).await));

    let retried = operator.ask(&["retry", "hello", "--wait"]).await;
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert!(operator.ask(&["ps", "--status", "running"]).await.stdout.contains("hello"));
    town.driver.will(SimulatedFault::FailNext(StatusReason::ReadinessTimeout));
    let new = town.version().await;
    insta::assert_snapshot!(
        "upgrade_failed",
        told(&operator.ask(&["upgrade", "hello", "--version", &new]).await)
    );
    insta::assert_snapshot!("ps_upgrade_failed", told(&operator.ask(&["ps", "--app", "hello"]).await));
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_comes_from_words_and_files_and_all_that_is_wrong_is_said() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "properties": { "greeting": { "type": "string" }, "workers": { "type": "integer", "default": 1 } },
    });
    let number =
        town.platform.draft(json!({ "runtime_profile": profile(PORT, 30), "config_schema": schema })).await;
    town.platform.artifact(&number, &crate::support::registry::shelve(&number).to_string()).await;
    town.platform.roll_out(&number).await;
    let file = operator.path("app.yaml");
    std::fs::write(&file, "greeting: from the file\nworkers: 3\n").unwrap();
    let file = format!("@{}", file.display());
    let plan = ["plan", "hello", "--config", &file, "--config", "greeting=7", "-o", "json"];
    let plan = answer(&operator.ask(&plan).await);
    assert_eq!(plan["effective"]["config"], json!({ "greeting": "7", "workers": 3 }));
    let wrong = ["up", "hello", "--config", "workers=many", "--config", "colour=red"];
    insta::assert_snapshot!("up_bad_config", told(&operator.ask(&wrong).await));
    let nothing = operator.ask(&["up", "hello", "--config", "greeting"]).await;
    assert_eq!((nothing.code, nothing.stderr.contains("key=value")), (Some(1), true), "{nothing:?}");
    let missing = operator.ask(&["up", "hello", "--config", "@/no/such.yaml"]).await;
    assert_eq!((missing.code, missing.stderr.contains("/no/such.yaml")), (Some(1), true), "{missing:?}");
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_can_be_asked_for_has_a_flag() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let plan = [
        "plan",
        "hello",
        "--mode",
        "tenant_dedicated",
        "--scope",
        "project",
        "--port",
        "31234",
        "-o",
        "json",
    ];
    let effective = answer(&operator.ask(&plan).await)["effective"].clone();
    assert_eq!(
        (
            &effective["operating_mode"],
            &effective["control_plane_scope"],
            &effective["resources"]["host_port"]
        ),
        (&json!("tenant_dedicated"), &json!("project"), &json!(31234))
    );
    let id = "01970000-0000-7000-8000-000000000000";
    let credential = format!("hf={id}");
    let refusal = async |words: &[&str]| {
        let words: Vec<&str> = ["plan", "hello", "-o", "json"].iter().chain(words).copied().collect();
        let said = operator.ask(&words).await;
        assert_ne!(said.code, Some(0), "{said:?}");
        said.stderr
    };
    for (words, about) in [
        (&["--variant", "cuda"][..], "/variant"),
        (&["--credential", &credential], "/credentials/hf"),
        (&["--package", "not a package"], "/packages"),
        (&["--artifact", id], "artifact"),
        (&["--mode", "platform_managed"], "mode_disabled"),
        (&["--credential", "hf"], "class=id"),
        (&["--mode", "happy"], "happy"),
    ] {
        let said = refusal(words).await;
        assert!(said.contains(about), "{words:?}: {said}");
        let error: Value = serde_json::from_str(&said).expect("an error as it was asked for");
        assert!(error["error"]["message"].is_string(), "{error:#}");
    }
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_wait_gets_the_run_and_can_watch_the_list_change() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let mut watching = Running::start(operator.command(&["ps", "--watch"]));
    town.driver.will(SimulatedFault::Hang);
    let begun = answer(&operator.ask(&["up", "hello", "--detach", "-o", "json"]).await);
    let run = begun["workflow"]["id"].as_str().unwrap();
    watching.says("hello  hello  1.0.0  deploying").await;
    town.driver.release(1);
    let waited = operator.ask(&["wait", run]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    watching.says("hello  hello  1.0.0  running").await;
    assert_eq!(operator.ask(&["down", "hello"]).await.code, Some(0));
    let told = watching.says("hello  hello  1.0.0  decommissioned").await;
    assert_eq!(told.matches("  decommissioned  ").count(), 1, "that it has ended is told once: {told}");
    watching.end().await;

    answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    let other = answer(&operator.ask(&["up", "hello", "--name", "hello", "-o", "json"]).await);
    let ambiguous = operator.ask(&["down", "hello"]).await;
    assert_eq!(ambiguous.code, Some(1), "{ambiguous:?}");
    assert!(ambiguous.stderr.contains(other["id"].as_str().unwrap()), "{ambiguous:?}");
    assert_eq!(operator.ask(&["down", "nobody"]).await.code, Some(4));
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_goes_on_when_the_platform_is_away_for_a_moment() {
    let town = Town::new().await;
    let mut operator = town.shell("operator");
    town.version().await;
    let door = crate::support::agent::Door::open(&town.platform.http).await;
    operator.set("GPUAAS_BASE_URL", door.url.clone());
    // On a terminal talk is heard too; a pipe behind it keeps it from being a screen.
    let mut words = operator.on_terminal(&["ps", "--watch"]);
    words = through_a_pipe(words);
    let mut watching = Running::start(words);
    answer(&operator.ask(&["up", "hello", "--name", "early", "-o", "json"]).await);
    watching.says("early  hello  1.0.0  running").await;
    door.cut(true);
    watching.says("cannot look just now, and goes on trying").await;
    door.cut(false);
    answer(&operator.ask(&["up", "hello", "--name", "late", "-o", "json"]).await);
    let told = watching.says("late  hello  1.0.0  running").await;
    assert_eq!(told.matches("cannot look").count(), 1, "an outage is told once: {told}");
    watching.end().await;
    town.end().await;
}

/// The same command with its stdout on a pipe, and its stderr on the terminal still.
fn through_a_pipe(terminal: std::process::Command) -> std::process::Command {
    let mut piped = std::process::Command::new(terminal.get_program());
    for argument in terminal.get_args() {
        let argument = argument.to_string_lossy();
        let is_command = argument.starts_with('\'');
        piped.arg(if is_command { format!("{argument} | cat") } else { argument.into_owned() });
    }
    for (name, value) in terminal.get_envs() {
        match value {
            Some(value) => piped.env(name, value),
            None => piped.env_remove(name),
        };
    }
    piped
}
