//! `gpuaas mcp` as an agent drives it: JSON-RPC on the pipe, a plan before every change.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use workflows::sequencer::number_all;

use super::Shell;
use super::instances::Town;

/// Somebody who speaks the protocol.
struct Agent {
    child: Child,
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    asked: u64,
}

impl Agent {
    async fn start(shell: &Shell) -> Agent {
        let mut command = Command::from(shell.command(&["mcp"]));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut agent = Agent { child, stdin, answers: BufReader::new(stdout).lines(), asked: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "story", "version": "1" },
        });
        let welcome = agent.ask("initialize", hello).await;
        assert_eq!(welcome["result"]["serverInfo"]["name"], "gpuaas", "{welcome:#}");
        agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        agent
    }

    async fn send(&mut self, message: Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let line = self.answers.next_line().await.unwrap().expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("nothing but the protocol is on stdout");
        assert_eq!(answer["id"], json!(id), "{answer:#}");
        answer
    }

    /// What a tool answers, and whether it is a refusal.
    async fn call(&mut self, tool: &str, arguments: Value) -> (Value, bool) {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let result = &answer["result"];
        assert!(result.is_object(), "{answer:#}");
        (result["structuredContent"].clone(), result["isError"] == json!(true))
    }

    /// Asks for the plan and confirms it by its token.
    async fn confirmed(&mut self, tool: &str, mut arguments: Value) -> (Value, bool) {
        let (plan, refused) = self.call(tool, arguments.clone()).await;
        assert_eq!((refused, &plan["done"]), (false, &json!(false)), "{tool}: {plan:#}");
        arguments["confirm"] = plan["confirm"].clone();
        self.call(tool, arguments).await
    }

    async fn end(mut self) {
        drop(self.stdin);
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "it ends with the conversation");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_plans_first_confirms_and_follows() {
    let town = Town::new().await;
    town.version().await;
    let mut agent = Agent::start(&town.shell("operator")).await;
    let listed = agent.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    for tool in tools {
        let schema = &tool["inputSchema"];
        let changes = tool["annotations"]["readOnlyHint"] == json!(false);
        assert_eq!(schema["type"], "object", "{tool:#}");
        assert_eq!(
            schema["properties"]["confirm"].is_object(),
            changes,
            "who changes must be confirmed: {tool:#}"
        );
    }
    let (apps, _) = agent.call("list_apps", json!({})).await;
    assert_eq!(apps["items"][0]["slug"], "hello");

    let (plan, refused) = agent.call("deploy", json!({ "app": "hello", "gpus": 1 })).await;
    assert_eq!((refused, &plan["done"]), (false, &json!(false)));
    assert_eq!(plan["plan"]["workflow_kind"], "instance.deploy");
    let (none, _) = agent.call("list_instances", json!({})).await;
    assert_eq!(none["items"], json!([]), "a plan does nothing");

    // Nothing but the token of this very plan confirms it, and once.
    let token = &plan["confirm"];
    for (tool, arguments) in [
        ("deploy", json!({ "app": "hello", "gpus": 1, "confirm": true })),
        ("deploy", json!({ "app": "hello", "gpus": 1, "confirm": "yes" })),
        ("deploy", json!({ "app": "hello", "gpus": 2, "confirm": token })),
        ("set_budget", json!({ "action": "warn", "confirm": token })),
    ] {
        let (no, refused) = agent.call(tool, arguments.clone()).await;
        assert_eq!((refused, &no["error"]["code"]), (true, &json!("usage")), "{arguments}: {no:#}");
    }
    let (none, _) = agent.call("list_instances", json!({})).await;
    assert_eq!(none["items"], json!([]), "and nothing was done");
    let confirmed = json!({ "app": "hello", "gpus": 1, "confirm": token });
    let (begun, _) = agent.call("deploy", confirmed.clone()).await;
    let (again, refused) = agent.call("deploy", confirmed).await;
    assert!(refused, "{again:#}");
    let workflow = begun["workflow"]["id"].as_str().unwrap();
    let (run, _) = agent.call("wait_for_workflow", json!({ "workflow": workflow, "seconds": 60 })).await;
    assert_eq!(run["status"], "succeeded", "{run:#}");
    let (shown, _) = agent.call("get_instance", json!({ "instance": "hello" })).await;
    assert_eq!(shown["endpoints"][0]["url"], "http://127.0.0.1:30000");
    let (plan, _) = agent.call("decommission", json!({ "instance": "hello" })).await;
    assert_eq!((&plan["done"], &plan["plan"]["action"]), (&json!(false), &json!("decommission")));

    // Everything that can be read of it afterwards.
    number_all(town.platform.story.engine.pool()).await.unwrap();
    let correlation = run["correlation_id"].as_str().unwrap();
    for (tool, arguments, some) in [
        ("list_events", json!({ "correlation_id": correlation }), "items"),
        ("get_trace", json!({ "correlation_id": correlation }), "items"),
        ("list_audit", json!({ "action": "create_app_instance" }), "items"),
        ("list_artifacts", json!({ "app": "hello" }), "items"),
    ] {
        let (told, refused) = agent.call(tool, arguments).await;
        assert!(!refused && told[some].as_array().is_some_and(|items| !items.is_empty()), "{tool}: {told:#}");
    }
    for (tool, arguments, field) in [
        ("get_logs", json!({ "instance": "hello", "tail": 5 }), "lines"),
        ("get_usage", json!({ "window": "hour" }), "rated_until"),
        ("list_submissions", json!({}), "items"),
    ] {
        let (told, refused) = agent.call(tool, arguments).await;
        assert!(!refused && told.get(field).is_some(), "{tool}: {told:#}");
    }
    agent.end().await;
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_looks_before_it_operates() {
    let town = Town::new().await;
    town.version().await;
    let mut agent = Agent::start(&town.shell("project-admin")).await;
    let (begun, _) = agent.confirmed("deploy", json!({ "app": "hello", "gpus": 1 })).await;
    let workflow = begun["workflow"]["id"].as_str().unwrap();
    agent.call("wait_for_workflow", json!({ "workflow": workflow, "seconds": 60 })).await;
    for verb in ["retry", "pause", "resume", "cancel"] {
        let tool = format!("{verb}_workflow");
        let (plan, refused) = agent.call(&tool, json!({ "workflow": workflow })).await;
        assert_eq!(
            (refused, &plan["done"], &plan["plan"]["id"]),
            (false, &json!(false), &json!(workflow)),
            "{tool}"
        );
        let (no, refused) = agent.confirmed(&tool, json!({ "workflow": workflow })).await;
        assert_eq!(
            (refused, &no["error"]["code"]),
            (true, &json!("conflict")),
            "{tool} of a run that ended: {no:#}"
        );
    }
    let (plan, _) = agent.call("retry_instance", json!({ "instance": "hello" })).await;
    assert_eq!((&plan["done"], &plan["plan"]["display_name"]), (&json!(false), &json!("hello")));
    let (no, refused) = agent.confirmed("retry_instance", json!({ "instance": "hello" })).await;
    assert_eq!((refused, &no["error"]["code"]), (true, &json!("conflict")), "it runs: {no:#}");
    let (plan, _) = agent.call("entitle", json!({ "app": "hello", "enabled": false })).await;
    assert_eq!((&plan["done"], &plan["plan"]["now"]["enabled"]), (&json!(false), &json!(true)), "{plan:#}");
    let (set, _) = agent.confirmed("entitle", json!({ "app": "hello", "enabled": false })).await;
    assert_eq!(set["enabled"], json!(false), "{set:#}");
    agent.end().await;
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_for_the_agent_to_read() {
    let town = Town::new().await;
    town.version().await;
    let mut agent = Agent::start(&town.shell("viewer")).await;
    let (denied, refused) = agent.confirmed("deploy", json!({ "app": "hello" })).await;
    assert_eq!((refused, &denied["error"]["answer"]["code"]), (true, &json!("insufficient_permissions")));
    let (unplaced, refused) = agent.call("deploy", json!({ "app": "hello", "gpus": 9 })).await;
    assert_eq!((refused, &unplaced["error"]["answer"]["code"]), (true, &json!("placement_unsatisfiable")));
    assert!(unplaced["error"]["answer"]["details"]["matrix"].is_array());
    let (wrong, refused) = agent.call("deploy", json!({ "app": "hello", "colour": "red" })).await;
    assert!(refused && wrong["error"]["message"].as_str().unwrap().contains("colour"), "{wrong:#}");
    let (explained, _) = agent.call("explain_error", json!({ "code": "state_conflict" })).await;
    assert_eq!(explained["status"], 409);
    let (explained, _) = agent.call("explain_error", json!({ "code": "node_unreachable" })).await;
    assert_eq!(explained["status_reason"], "node_unreachable", "{explained:#}");
    let (strange, refused) = agent.call("get_trace", json!({ "correlation_id": "x/../../me" })).await;
    assert!(refused && strange["error"]["answer"]["code"] != "route_not_found", "{strange:#}");
    let unknown = agent.ask("tools/call", json!({ "name": "explode", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], json!(-32602), "{unknown:#}");
    agent.end().await;
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_keeps_webhooks_machines_and_budgets_and_learns_a_secret_once() {
    let town = Town::new().await;
    town.version().await;
    let mut agent = Agent::start(&town.shell("project-admin")).await;
    let (made, refused) = agent.confirmed("create_service_account", json!({ "name": "builder" })).await;
    assert!(!refused && made["private_key_pem"].is_string(), "{made:#}");
    let account = json!({ "service_account": made["id"] });
    let (listed, _) = agent.call("list_service_accounts", json!({})).await;
    assert!(!listed.to_string().contains("PRIVATE KEY"), "{listed:#}");
    let (rotated, _) = agent.confirmed("rotate_service_account_key", account.clone()).await;
    assert!(rotated["private_key_pem"].is_string() && rotated["private_key_pem"] != made["private_key_pem"]);
    let disable = json!({ "service_account": made["id"], "enabled": false });
    let (disabled, _) = agent.confirmed("set_service_account", disable).await;
    assert_eq!(disabled["status"], "disabled", "{disabled:#}");
    let (gone, refused) = agent.confirmed("delete_service_account", account).await;
    assert!(!refused, "{gone:#}");

    let hook = json!({ "url": "https://hooks.example.com/gpuaas", "event_types": ["apps.instance.running"] });
    let (hook, refused) = agent.confirmed("create_webhook", hook).await;
    assert!(!refused && hook["secret"].is_string(), "{hook:#}");
    let (listed, _) = agent.call("list_webhooks", json!({})).await;
    assert!(!listed.to_string().contains("whsec_"), "{listed:#}");
    let webhook = json!({ "webhook": hook["id"] });
    let (sent, _) = agent.call("list_deliveries", webhook.clone()).await;
    assert_eq!(sent["items"], json!([]), "{sent:#}");
    let (off, _) = agent.confirmed("set_webhook", json!({ "webhook": hook["id"], "active": false })).await;
    assert_eq!(off["status"], "disabled", "{off:#}");
    let (gone, refused) = agent.confirmed("delete_webhook", webhook).await;
    assert!(!refused, "{gone:#}");

    let budget = json!({ "amount_minor": 5000, "action": "warn" });
    let (set, refused) = agent.confirmed("set_budget", budget).await;
    assert_eq!(
        (refused, &set["amount_minor"], &set["mode"]),
        (false, &json!(5000), &json!("simulate")),
        "{set:#}"
    );
    let (read, _) = agent.call("get_budget", json!({})).await;
    assert_eq!(read["amount_minor"], 5000);
    agent.end().await;
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_publishes_promotes_and_rolls_out() {
    let town = Town::new().await;
    let number = town.version().await;
    let mut publisher = Agent::start(&town.shell("publisher")).await;
    let (intent, refused) =
        publisher.confirmed("publish_intent", json!({ "app_slug": "hello", "app_version": number })).await;
    assert!(!refused && intent["repository"].is_string(), "{intent:#}");
    let (listed, _) = publisher.call("list_artifacts", json!({ "app": "hello" })).await;
    let promote = json!({ "artifact": listed["items"][0]["id"], "channel": "dev" });
    let (promoted, refused) = publisher.confirmed("promote_artifact", promote).await;
    assert!(refused || promoted["workflow"]["kind"] == "artifact.promote", "{promoted:#}");
    publisher.end().await;

    let mut admin = Agent::start(&town.shell("admin")).await;
    let retire = json!({ "app": "hello", "version": number, "action": "deprecate", "reason": "old" });
    let (plan, _) = admin.call("move_version", retire.clone()).await;
    assert!(plan["plan"]["transition"]["gates"].is_array(), "{plan:#}");
    let (moved, refused) = admin.confirmed("move_version", retire).await;
    assert!(!refused && moved["workflow"]["id"].is_string(), "{moved:#}");
    let (nothing, refused) = admin.call("bulk_retry", json!({ "cause": "retries_exhausted" })).await;
    assert_eq!((refused, &nothing["plan"]["results"]), (false, &json!([])), "{nothing:#}");
    let (both, refused) = admin.call("bulk_retry", json!({})).await;
    assert!(refused, "{both:#}");
    admin.end().await;
    town.end().await;
}
