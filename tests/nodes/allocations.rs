//! A node is given away once: what projects get is counted under its lock.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Http, admin, project};
use crate::support::node::Node;
use crate::support::realm::{EXAMPLE, NEXT_DOOR};
use crate::support::story::Story;

fn slice(node: Uuid, gpus: i32) -> Value {
    json!({
        "project_id": EXAMPLE, "node_id": node, "capacity_shape": "gpu_slice", "gpu_count": gpus, "cpu_cores": 4,
        "memory_gib": 32,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_given_away_twice_even_to_all_at_once() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    // Eight GPUs, five askers for three each: two are served.
    let (all, asks) = (admin("/allocations"), (0..5).map(|_| slice(node.id, 3)));
    let answers = futures::future::join_all(asks.map(|body| http.post(&all, body))).await;
    let made: Vec<_> = answers.iter().filter(|answer| answer.status.as_u16() == 201).collect();
    assert_eq!(made.len(), 2);
    assert_eq!((&made[0].body["sku"], &made[0].body["accelerator"]), (&json!("H100-80GB"), &json!("nvidia")));
    for refused in answers.iter().filter(|answer| answer.status.as_u16() != 201) {
        assert_eq!(refused.body["code"], "placement_unsatisfiable", "{:#}", refused.body);
        let lacking = json!([{ "predicate": "gpu_count", "required": 3, "actual": 2 }]);
        assert_eq!(refused.body["details"]["lacking"], lacking);
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_machine_is_shared_with_nobody() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let whole = json!({ "project_id": EXAMPLE, "node_id": node.id, "capacity_shape": "baremetal" });
    let made = http.post(&admin("/allocations"), whole.clone()).await.with(201);
    assert_eq!(
        (&made["gpu_count"], &made["cpu_cores"], &made["memory_gib"]),
        (&json!(8), &json!(64), &json!(512))
    );
    http.post(&admin("/allocations"), slice(node.id, 0)).await.with(422);
    let path = admin(&format!("/allocations/{}/release", made["id"].as_str().unwrap()));
    for _ in 0..2 {
        assert_eq!(http.post(&path, json!({})).await.with(200)["status"], "released");
    }
    http.post(&admin("/allocations"), slice(node.id, 1)).await.with(201);
    let second = http.post(&admin("/allocations"), whole).await.with(422);
    let rows = second["details"]["lacking"].as_array().unwrap().clone();
    assert!(
        rows.contains(&json!({ "predicate": "other_allocations", "required": 0, "actual": 1 })),
        "{rows:?}"
    );
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn projects_read_their_own_and_a_drained_node_is_not_given_away() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let made = http.post(&admin("/allocations"), slice(node.id, 1)).await.with(201);
    let id: Uuid = made["id"].as_str().unwrap().parse().unwrap();
    let viewer = http.acting("viewer");
    assert_eq!(viewer.get(&project("/allocations?status=active")).await.ids(), [id]);
    assert_eq!(viewer.get(&project("/allocations?status=released")).await.ids(), Vec::<Uuid>::new());
    viewer.get(&project(&format!("/allocations/{id}"))).await.with(200);
    let next_door = http.acting("neighbour");
    let elsewhere = |path: &str| format!("/api/v1/projects/{NEXT_DOOR}{path}");
    assert_eq!(next_door.get(&elsewhere("/allocations")).await.ids(), Vec::<Uuid>::new());
    let hidden = next_door.get(&elsewhere(&format!("/allocations/{id}"))).await.with(404);
    assert_eq!(hidden["code"], "allocation_not_found");
    http.post(&admin(&format!("/nodes/{}/drain", node.id)), json!({})).await.with(200);
    let refused = http.post(&admin("/allocations"), slice(node.id, 1)).await.with(409);
    assert_eq!(refused["details"]["state"], "drained");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_read_from_either_end_and_a_page_of_one_order_does_not_go_on_in_the_other() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let mut made: Vec<Uuid> = Vec::new();
    for _ in 0..3 {
        let one = http.post(&admin("/allocations"), slice(node.id, 1)).await.with(201);
        made.push(one["id"].as_str().unwrap().parse().unwrap());
    }
    http.post(&admin(&format!("/allocations/{}/release", made[1])), json!({})).await.with(200);
    assert_eq!(http.get(&project("/allocations")).await.ids(), made);
    assert_eq!(http.get(&project("/allocations?status=active,releasing")).await.ids(), [made[0], made[2]]);
    let newest = project("/allocations?order=newest&limit=2");
    assert_eq!(http.get(&newest).await.ids(), [made[2], made[1]]);
    let page = http.get(&newest).await.with(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(http.get(&format!("{newest}&cursor={cursor}")).await.ids(), [made[0]]);
    http.get(&project(&format!("/allocations?cursor={cursor}"))).await.with(400);
    http.get(&project("/allocations?order=best")).await.with(400);
    story.end().await;
}
