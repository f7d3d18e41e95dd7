//! `gpuaas dev --simulate-gpus`: a machine without GPUs places instances as if it had some. Which ones an instance has is decided
//! as for real ones; what an engine would be asked for is in `nodes/gpus.rs`. Nothing here ran on a GPU.

use std::str::FromStr;

use serde_json::{Value, json};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

use crate::cli::Shell;
use crate::dev_apps::some_image;
use crate::support::cluster::Folder;
use crate::support::process::{Dev, Said};

fn read(dev: &Dev, path: &str) -> Value {
    let answer = dev.get_as(path, &dev.token("admin"));
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Somebody of the example project, at a shell.
fn at(dev: &Dev, username: &str) -> Shell {
    let address = dev.ready["api_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let mut shell = Shell::at(address.parse().unwrap(), &dev.token(username));
    shell.set("GPUAAS_PROJECT", dev.ready["project_id"].as_str().unwrap().to_owned());
    shell
}

fn well(said: Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"))
}

/// An app that may have GPUs, for everybody in the project.
fn publish(dev: &Dev, folder: &Folder) {
    let owner = dev.ready["project_id"].as_str().unwrap();
    let manifest = json!({
        "app": { "slug": "trainer", "display_name": "Trainer", "runtime_backend": "launchable_oci" },
        "version": { "version": "1.0.0", "runtime_profile": {
            "kind": "launchable_oci", "ports": [{ "container": 8080 }],
            "resources": { "gpu_count": { "default": 1, "max": 4 }, "cpu_cores": { "default": 1, "max": 1 },
                           "memory_gib": { "default": 1, "max": 1 } },
        } },
    });
    let admin = dev.token("admin");
    let act = |path: &str, body: &Value, status: u16| {
        let (told, answer) = dev.post_as(path, &admin, body);
        assert_eq!(told, status, "{path}: {answer:#}");
        answer
    };
    act(&format!("/api/v1/admin/apps/manifests?owner_project_id={owner}"), &manifest, 201);
    let image = some_image(&folder.0.join("image"));
    let command = ["publish", "trainer", "1.0.0", "--image", image.to_str().unwrap(), "-o", "json"];
    let artifact = well(at(dev, "publisher").run(&command));
    let promote = format!(
        "/api/v1/projects/{owner}/app-artifacts/{}/promote?wait=30s",
        artifact["id"].as_str().unwrap()
    );
    act(&promote, &json!({ "channel": "prod", "reason": "a story" }), 200);
    for verb in ["stage", "canary", "publish"] {
        let path = format!("/api/v1/admin/apps/catalog/trainer/versions/1.0.0/{verb}?wait=30s");
        let body = if verb == "canary" {
            json!({ "reason": "a story", "percent": 100 })
        } else {
            json!({ "reason": "a story" })
        };
        let moved = act(&path, &body, 200);
        assert_eq!(moved["workflow"]["status"], "succeeded", "{moved:#}");
    }
    let said = at(dev, "project-admin").run(&["entitle", "trainer"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// The numbers of the GPUs that the instance holds.
async fn holds(dev: &Dev, instance: &Value) -> Vec<i32> {
    let mut conn: PgConnection =
        PgConnectOptions::from_str(&dev.database_url()).unwrap().connect().await.unwrap();
    let held: Vec<i32> = sqlx::query_scalar(
        "select split_part(resource, ':gpu:', 2)::int from resource_ledger where instance_id = $1::text::uuid and kind = 'gpu'
         group by resource having sum(quantity) <> 0 order by 1",
    )
    .bind(instance["id"].as_str().unwrap())
    .fetch_all(&mut conn)
    .await
    .unwrap();
    conn.close().await.unwrap();
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn simulated_gpus_are_given_by_their_numbers_and_come_back() {
    let folder = Folder::new();
    let arguments = ["--docker-host", "unix:///nowhere/docker.sock", "--simulate-gpus", "4"];
    let dev = Dev::start(&folder.0.join("data"), &arguments);
    let node = read(&dev, "/api/v1/admin/nodes")["items"][0].clone();
    let gpus = node["inventory"]["gpus"].as_array().unwrap();
    assert_eq!(
        (gpus.len(), &gpus[3]["index"], &gpus[3]["simulated"]),
        (4, &json!(3), &json!(true)),
        "{node:#}"
    );
    publish(&dev, &folder);
    let operator = at(&dev, "operator");
    let up = |name: &str, gpus: &str| {
        operator.run(&["up", "trainer", "--name", name, "--gpus", gpus, "--yes", "-o", "json"])
    };
    let (one, two) = (well(up("one", "2")), well(up("two", "1")));
    assert_eq!((holds(&dev, &one).await, holds(&dev, &two).await), (vec![0, 1], vec![2]));
    let refused = up("three", "2");
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("gpu"), "it says of what there is too little: {refused:?}");

    well(operator.run(&["down", "one", "--yes", "-o", "json"]));
    assert_eq!(holds(&dev, &one).await, Vec::<i32>::new(), "what is gone holds nothing");
    let three = well(up("three", "3"));
    assert_eq!(
        holds(&dev, &three).await,
        [0, 1, 3],
        "what came back is given again, and nothing of anybody else's"
    );
    let (ended, said) = dev.stop();
    assert!(ended.success(), "{said}");
}
