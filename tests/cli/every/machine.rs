//! What needs no platform, or only a database; and how the commands that go on running say that they cannot begin.

use super::Stage;
use crate::artifacts::signer;
use crate::cli::Shell;
use crate::support::database::TestDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_asks_nobody() {
    let shell = Shell::new();
    let stage = Stage::of(&shell);
    let [one, two, three, bad] =
        ["one.yaml", "two.yaml", "three.yaml", "bad.yaml"].map(|name| shell.path(name).display().to_string());
    let words = |file| ["init", file, "--slug", "my-app", "--port", "9000"];
    stage.well("init", [&words(&one), &words(&two), &words(&three)]).await;
    stage.badly("init", [&words(&one); 3]).await;
    let broken = std::fs::read_to_string(&one).unwrap().replace("my-app", "No App");
    std::fs::write(&bad, broken).unwrap();
    stage.shows("validate", &["validate", &one], &["validate", &one, &bad]).await;
    let schema = shell.ask(&["validate", "--schema", "-o", "yaml"]).await;
    assert!(schema.code == Some(0) && schema.stdout.starts_with("\"$defs\":\n"), "{}", &schema.stdout[..80]);
    let valid = shell.ask(&["validate", &one, &bad, "-o", "name"]).await;
    assert_eq!((valid.code, valid.stdout), (Some(1), format!("{one}\n")));
    stage.shows("explain", &["explain", "state_conflict"], &["explain", "workflow_missing"]).await;
    stage.well("explain_list", [&["explain"]; 3]).await;
    let long = Stage::of(&shell).cut_to(12);
    long.shows("completions", &["completions", "fish"], &["completions", "tcsh"]).await;
    long.shows("config_default", &["config", "default"], &["config", "default", "--colour"]).await;
    let wrong = ["config", "show", "--set", "server.listen=nowhere"];
    stage.shows("config_show", &["config", "show"], &wrong).await;

    let set = ["config", "set", "--url", "https://gpuaas.example", "--project", "vision"];
    stage.shows("config_set", &set, &["config", "set", "--profile", "../../x"]).await;
    for name in ["first", "second", "third"] {
        let made = shell.ask(&["config", "set", "--profile", name, "--url", "https://gpuaas.example"]).await;
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    stage.shows("config_profiles", &["config", "profiles"], &["config", "profiles", "--colour"]).await;
    stage.shows("config_use", &["config", "use", "first"], &["config", "use", "nobody"]).await;
    let words = |name| ["config", "remove", name];
    stage.well("config_remove", [&words("first"), &words("second"), &words("third")]).await;
    stage.badly("config_remove", [&words("nobody"); 3]).await;

    let key = shell.path("token.pem");
    std::fs::write(&key, signer::private_key_pem(1)).unwrap();
    let key = format!("registry.token_key_file={}", key.display());
    let certificate =
        ["config", "registry-certificate", "--set", "registry.url=http://127.0.0.1:5000", "--set", &key];
    // What it says is signed anew each time.
    Stage::of(&shell).cut_to(4).well("config_registry-certificate", [&certificate; 3]).await;
    stage.badly("config_registry-certificate", [&["config", "registry-certificate"]; 3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_about_a_database() {
    let database = TestDatabase::new().await;
    crate::dev_schema::make_app_role().await;
    let (mut shell, url) = (Shell::new(), database.url());
    shell.set("GPUAAS_DATABASE_URL", url.clone());
    let stage = Stage::of(&shell);
    let nowhere = ["--set", "database.url=postgres://nobody@127.0.0.1:1/nothing"];
    stage.shows("migrate", &["migrate"], &[&["migrate"][..], &nowhere].concat()).await;
    // The server of the stories keeps nothing through a power cut and lets its superuser serve, which is what the doctor
    // finds, and all that it finds.
    let version: String =
        sqlx::query_scalar("show server_version").fetch_one(&database.pool()).await.unwrap();
    let stage = Stage::of(&shell).hiding(version, "VERSION");
    stage.finds("doctor", &["doctor"]).await;
    stage.badly("doctor", [&[&["doctor"][..], &nowhere].concat(); 3]).await;
    assert_eq!(shell.ask(&["migrate", "-o", "name"]).await.stdout, "1\n");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_on_running_says_why_it_cannot_begin() {
    let shell = Shell::new();
    let stage = Stage::of(&shell);
    let data = shell.path("agent").display().to_string();
    stage.badly("dev", [&["dev", "--set", "server.listen=nowhere"]; 3]).await;
    stage.badly("serve", [&["serve"]; 3]).await;
    stage.badly("agent", [&["agent", "--data-dir", &data]; 3]).await;
    let here = agent::detect_inventory(0).await;
    let machine = format!("{} cores, {} GiB", here.cpu_cores, here.memory_gib);
    let stage = Stage::of(&shell).hiding(machine, "N cores, M GiB");
    stage
        .badly("agent_doctor", [&["agent", "--data-dir", &data, "--driver", "simulated", "doctor"]; 3])
        .await;
    stage.badly("mcp", [&["mcp", "--profile", "nobody"]; 3]).await;
}
