//! Who may log in to a node: the keys of the instances that stand there and ask for it, in a block of their own. Whatever else is
//! in the file stays as it is.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use agent::Simulated;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use engine::RunState;
use node_protocol::{Outcome, Output, Refusal};
use serde_json::{Value, json};
use uuid::Uuid;

use super::nodes::watch;
use crate::http::{admin, project};
use crate::support::agent::RunningAgent;
use crate::support::docker::PORT;
use crate::support::node::Node;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::realm::EXAMPLE;
use crate::support::registry::shelve;

const OTHERS: &str = "# mine\nssh-ed25519 AAAAother me@home\n\n";

/// A private key as OpenSSH writes it, with nothing in its secret part; and the line by which nodes know it.
fn key(seed: u8) -> (String, String) {
    let word = |bytes: &[u8]| [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let blob = [word(b"ssh-ed25519"), word(&[seed; 32])].concat();
    let parts = [b"openssh-key-v1\0".to_vec(), word(b"none"), word(b"none"), word(b""), vec![0, 0, 0, 1]];
    let all = [parts.concat(), word(&blob), word(b"nothing")].concat();
    let armored = format!(
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
        BASE64_STANDARD.encode(all)
    );
    (armored, format!("ssh-ed25519 {}", BASE64_STANDARD.encode(blob)))
}

async fn keep(platform: &Platform, name: &str, value: &str) -> Uuid {
    let body = json!({ "name": name, "kind": "ssh_key", "value": value });
    let made = platform.http.acting("project-admin").post(&project("/access-credentials"), body).await;
    id_of(&made.with(201))
}

/// A version that is set up by somebody who logs in.
async fn bootstrapped(platform: &Platform) -> String {
    let requirements = json!({ "bootstrap_access_credential": "ssh_key" });
    let more = json!({ "runtime_profile": profile(PORT, 30), "runtime_requirements": requirements });
    let number = platform.draft(more).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

fn asking(number: &str, credentials: &Value) -> Value {
    json!({ "app_slug": "hello", "version": number, "display_name": "hello", "credentials": credentials })
}

async fn deploy(platform: &Platform, number: &str, key: Uuid) -> Uuid {
    let made =
        platform.create(asking(number, &json!({ "bootstrap_access_credential": key }))).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    id_of(&made)
}

/// The machine has an account for it, with keys of somebody else's. Answers the file of the account.
fn furnish(agent: &RunningAgent) -> PathBuf {
    let owner = std::fs::metadata(&agent.folder).unwrap();
    let line = format!("gpuaas:x:{}:{}::{}:/bin/sh\n", owner.uid(), owner.gid(), agent.folder.display());
    std::fs::write(agent.folder.join("passwd"), line).unwrap();
    std::fs::create_dir(agent.folder.join(".ssh")).unwrap();
    let file = agent.folder.join(".ssh/authorized_keys");
    std::fs::write(&file, OTHERS).unwrap();
    file
}

/// Waits until these keys are in the block, and nothing else.
async fn holds(file: &PathBuf, keys: &[&String]) {
    let block = |keys: &[&String]| {
        let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
        format!("# BEGIN gpuaas: this block is written by the node agent\n{lines}# END gpuaas\n")
    };
    let mut keys = keys.to_vec();
    keys.sort();
    let expected = if keys.is_empty() { OTHERS.to_owned() } else { format!("{OTHERS}{}", block(&keys)) };
    for _ in 0..2000 {
        if std::fs::read_to_string(file).unwrap() == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nodes_block_holds_the_keys_of_what_stands_there_and_no_other_line_changes() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 4).await;
    let file = furnish(&agent);
    let number = bootstrapped(&platform).await;
    let ((first, one), (second, two), (third, three)) = (key(1), key(2), key(3));
    let (a, b) = (keep(&platform, "first", &first).await, keep(&platform, "second", &second).await);

    let refused = platform.create(asking(&number, &json!({}))).await.with(400);
    assert_eq!(
        refused["details"]["errors"][0]["pointer"], "/credentials/bootstrap_access_credential",
        "{refused:#}"
    );
    let of_a = deploy(&platform, &number, a).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap().matches(&one).count(), 1, "before it runs");
    let of_b = deploy(&platform, &number, b).await;
    holds(&file, &[&one, &two]).await;

    let credential = |id: Uuid, verb: &str| project(&format!("/access-credentials/{id}/{verb}"));
    let admin = platform.http.acting("project-admin");
    admin.post(&credential(a, "rotate"), json!({ "value": third })).await.with(200);
    holds(&file, &[&two, &three]).await;
    admin.post(&credential(a, "rotate"), json!({ "value": "hunter2" })).await.with(400);
    admin.post(&credential(b, "revoke"), json!({})).await.with(200);
    holds(&file, &[&three]).await;

    platform.decommission(of_a).await;
    holds(&file, &[]).await;
    platform.decommission(of_b).await;
    holds(&file, &[]).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_let_the_key_in_fails_the_deployment_and_says_why() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, _) = platform.node("gpu-1", &driver, 4).await;
    std::fs::write(agent.folder.join("passwd"), "root:x:0:0::/root:/bin/sh\n").unwrap();
    let number = bootstrapped(&platform).await;
    let id = keep(&platform, "first", &key(1).0).await;
    let asked = asking(&number, &json!({ "bootstrap_access_credential": id }));
    let made = platform.create(asked).await.with(202);
    platform.story.ends(id_of(&made["workflow"])).await;
    let failed = platform.instance(id_of(&made)).await;
    assert_eq!(
        (&failed["status"], &failed["status_reason"]["code"]),
        (&json!("failed"), &json!("task_rejected"))
    );
    let message = failed["status_reason"]["message"].as_str().unwrap();
    assert!(message.contains("no user \"gpuaas\""), "{message}");
    assert_eq!(platform.held(id_of(&made)).await, Vec::<String>::new());
    agent.end().await;
    platform.end().await;
}

struct Opened {
    agent: RunningAgent,
    file: PathBuf,
    credential: Uuid,
    id: Uuid,
}

/// A node that the key of an instance opens.
async fn opened(platform: &Platform) -> Opened {
    let (agent, _) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let file = furnish(&agent);
    let number = bootstrapped(platform).await;
    let (private, public) = key(1);
    let credential = keep(platform, "first", &private).await;
    let id = deploy(platform, &number, credential).await;
    holds(&file, &[&public]).await;
    Opened { agent, file, credential, id }
}

/// A key that may still open the door is not taken for gone.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_ends_only_once_its_node_has_let_go_of_its_key() {
    let platform = Platform::new().await;
    let Opened { agent, file, id, .. } = opened(&platform).await;

    // Somebody tidied up by hand: where the block ends cannot be told any more.
    let whole = std::fs::read_to_string(&file).unwrap();
    let torn = whole.replace("# END gpuaas\n", "");
    std::fs::write(&file, &torn).unwrap();
    let path = project(&format!("/app-instances/{id}/decommission"));
    let end = id_of(&platform.http.post(&path, json!({})).await.with(202)["workflow"]);
    assert_eq!(platform.story.settles(end).await, RunState::Paused);
    let held_up = platform.instance(id).await;
    assert_eq!(
        (&held_up["status"], &held_up["status_reason"]["code"]),
        (&json!("decommissioning"), &json!("task_rejected"))
    );
    let message = held_up["status_reason"]["message"].as_str().unwrap();
    assert!(message.contains("take the key out") && message.contains("`# END gpuaas`"), "{message}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), torn, "nobody's line was touched");

    std::fs::write(&file, &whole).unwrap();
    platform.http.post(&project(&format!("/workflows/{end}/retry")), json!({})).await.with(202);
    platform.succeeds(end).await;
    assert_eq!(platform.instance(id).await["status"], "decommissioned");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), OTHERS, "the key went before the instance did");
    agent.end().await;
    platform.end().await;
}

/// Whoever revokes a key waits for no node, so the platform sees to it that each one hears of it in the end.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_could_not_take_a_revoked_key_out_is_told_again() {
    let platform = Platform::new().await;
    let Opened { agent, file, credential, id } = opened(&platform).await;

    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.replace("# END gpuaas\n", "")).unwrap();
    let revoke = project(&format!("/access-credentials/{credential}/revoke"));
    platform.http.acting("project-admin").post(&revoke, json!({})).await.with(200);
    let failed = "select count(*) = 1 and $2::text[] is not null from node_tasks
        where node_id = $1 and kind = 'ssh.install_authorized_keys' and status = 'failed'";
    platform.story.until_true("the node says that it cannot", failed, agent.id, &[]).await;

    std::fs::write(&file, &whole).unwrap();
    watch(&platform).await;
    assert_eq!(told(&platform, agent.id).await, 2, "not before a minute has passed");
    let earlier = "update node_tasks set finished_at = finished_at - interval '2 minutes' where node_id = $1";
    sqlx::query(earlier).bind(agent.id).execute(&platform.story.pool).await.unwrap();
    watch(&platform).await;
    holds(&file, &[]).await;
    let done = "select count(*) = 1 and $2::text[] is not null from node_tasks
        where node_id = $1 and kind = 'ssh.install_authorized_keys' and status = 'succeeded' and input -> 'keys' = '[]'";
    platform.story.until_true("the node says that it did", done, agent.id, &[]).await;
    sqlx::query(earlier).bind(agent.id).execute(&platform.story.pool).await.unwrap();
    watch(&platform).await;
    assert_eq!(told(&platform, agent.id).await, 3, "what was heard is not said again");
    platform.decommission(id).await;
    agent.end().await;
    platform.end().await;
}

/// How often the node was told who may log in.
async fn told(platform: &Platform, node: Uuid) -> i64 {
    let tasks = "select count(*) from node_tasks where node_id = $1 and kind = 'ssh.install_authorized_keys'";
    sqlx::query_scalar(tasks).bind(node).fetch_one(&platform.story.pool).await.unwrap()
}

/// That it knows of a newer set says nothing of what became of that one.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_told_of_something_newer_is_told_again_before_anything_is_launched() {
    let platform = Platform::new().await;
    let node = Node::enrol(&platform.http, "gpu-1").await;
    let body = json!({
        "project_id": EXAMPLE, "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 0, "cpu_cores": 8,
        "memory_gib": 64,
    });
    platform.http.post(&admin("/allocations"), body).await.with(201);
    let number = bootstrapped(&platform).await;
    let credential = keep(&platform, "first", &key(1).0).await;
    let wish = asking(&number, &json!({ "bootstrap_access_credential": credential }));
    let newer = Outcome::Refused { refusal: Refusal::StaleGeneration };

    let made = platform.create(wish.clone()).await.with(202);
    let first = node.takes("10s").await;
    node.answers(&first, &newer).await.with(200);
    let second = node.takes("10s").await;
    assert_eq!((second.kind.as_str(), &second.input), ("ssh.install_authorized_keys", &first.input));
    assert!(second.generation > first.generation, "what is told now is newer");
    node.answers(&second, &Outcome::Succeeded { output: Output::KeysInstalled }).await.with(200);
    node.launches(false).await;
    let probe = node.takes("10s").await;
    let healthy = Outcome::Succeeded { output: Output::Healthy { tries: 1 } };
    node.answers(&probe, &healthy).await.with(200);
    platform.succeeds(id_of(&made["workflow"])).await;

    // It is not told for ever.
    let made = platform.create(wish).await.with(202);
    for _ in 0..5 {
        node.answers(&node.takes("10s").await, &newer).await.with(200);
    }
    assert_eq!(platform.story.ends(id_of(&made["workflow"])).await, RunState::Compensated);
    let failed = platform.instance(id_of(&made)).await;
    assert_eq!(failed["status_reason"]["code"], "task_rejected", "{failed:#}");
    let undo = node.takes("10s").await;
    node.answers(&undo, &Outcome::Succeeded { output: Output::KeysInstalled }).await.with(200);
    platform.end().await;
}
