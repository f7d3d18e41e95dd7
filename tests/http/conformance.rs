//! What the API document promises is what the server does. schemathesis, which shares no code with us, reads the document
//! and asks a server behind a real port whatever the document allows and much that it does not, with every check it has.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use super::{Http, Listening, admin, organization, project};
use crate::catalog;
use crate::support::cluster::Folder;
use crate::support::node::Node;
use crate::support::realm;
use crate::support::slow::{is_slow, short_or_slow};
use crate::support::story::Story;
use crate::support::world::{Do, Trouble, touch};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Something of everything, so that lists have items and ids lead somewhere. Answers which path parameter is what where.
async fn furnish(story: &Story, http: &Http) -> Vec<(&'static str, &'static str, String)> {
    story.world.trouble("odd", [Trouble::NeedsOperator]);
    let mut run = Uuid::nil();
    for does in [vec![touch("a")], vec![touch("odd")], vec![Do::Wait(3_600_000)]] {
        run = story.start(does).await;
    }
    story.quiet().await;
    let made = http.post(&project("/service-accounts"), json!({ "name": "pipeline" })).await.with(201);
    let trust = json!({
        "name": "ci", "service_account_id": made["id"], "issuer": "https://ci.example", "audience": "gpuaas",
        "subject_pattern": "repo:acme/*",
    });
    http.post(&project("/federated-trusts"), trust).await.with(201);
    let role = json!({ "name": "watcher", "permissions": ["workflows.read"] });
    http.post(&organization("/roles"), role).await.with(201);
    http.put(&admin(&format!("/policies/org/{}/canary.min_samples", realm::OTHER)), json!({ "value": 30 }))
        .await
        .with(200);
    catalog::register(http, "notes", "1.0.0").await;
    let submitted =
        http.post(&project("/apps/manifests"), catalog::manifest("drafts", "1.0.0")).await.with(201);
    let node = Node::enrol(http, "gpu-1").await;
    let share = json!({
        "project_id": realm::EXAMPLE, "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 1, "cpu_cores": 4,
        "memory_gib": 32,
    });
    let allocation = http.post(&admin("/allocations"), share).await.with(201);
    let text = |value: &Value| value.as_str().expect("an id").to_owned();
    vec![
        ("/catalog/|/entitlements/", "slug", "notes".to_owned()),
        ("/versions/", "version", "1.0.0".to_owned()),
        ("/admin/schedules/", "name", "check_promises".to_owned()),
        ("/workflows/", "id", run.to_string()),
        ("/submissions/", "id", text(&submitted["id"])),
        ("/nodes/", "id", node.id.to_string()),
        ("/allocations/", "id", text(&allocation["id"])),
    ]
}

/// The configuration with the ids of what was furnished.
fn configuration(known: &[(&str, &str, String)]) -> String {
    let mut text =
        std::fs::read_to_string(format!("{ROOT}/tests/http/schemathesis/schemathesis.toml")).unwrap();
    for (paths, parameter, value) in known {
        write!(text, "\n[[operations]]\ninclude-path-regex = '{paths}'\nparameters = {{ 'path.{parameter}' = '{value}' }}\n")
            .unwrap();
    }
    text
}

/// `paths` is a regular expression.
async fn examine(server: &Listening, who: &Http, known: &[(&str, &str, String)], paths: &str) {
    let tool = PathBuf::from(ROOT).join("target/schemathesis/bin/schemathesis");
    let folder = Folder::new();
    let file = folder.0.join("schemathesis.toml");
    std::fs::write(&file, configuration(known)).unwrap();
    let mut command = Command::new(&tool);
    command
        .arg("--config-file")
        .arg(&file)
        .args(["run", "docs/openapi.json"])
        .args(["--url", &format!("http://{}", server.address)])
        .args(["--include-path-regex", paths])
        .args(["--max-examples", short_or_slow("8", "200")])
        .env("GPUAAS_TOKEN", who.token())
        .current_dir(ROOT)
        .stdin(Stdio::null());
    if !is_slow() {
        // The same requests each time: what fails, fails for everybody. Long runs look further.
        command.args(["--seed", "1"]);
    }
    let said = command.output().await.expect("schemathesis runs: ./dev test installs it");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_superadmin_meets_what_the_document_says() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let known = furnish(&story, &http).await;
    let server = http.listen().await;
    examine(&server, &http, &known, ".").await;
    server.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_admin_meets_what_the_document_says() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let known = furnish(&story, &http).await;
    let server = http.listen().await;
    // Elsewhere they are refused, which the matrix asks of every route.
    examine(&server, &http.acting("project-admin"), &known, "^/api/v1/(me|projects)").await;
    server.close().await;
    story.end().await;
}
