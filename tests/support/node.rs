//! A node in a story, by the words of the protocol alone: it enrols, proves itself, takes tasks and answers them. What a
//! real agent adds (a journal, a driver) is not here.

use axum::http::Method;
use node_protocol::{
    Envelope, Evidence, Key, Keyring, Launched, Outcome, Output, Signed, Task, assert_identity,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Answer, Http, admin};
use crate::support::realm::PLATFORM;

pub struct Node {
    pub id: Uuid,
    pub key: Key,
    pub keyring: Keyring,
    pub http: Http,
}

impl Node {
    /// Made by the administrator that `http` acts as, enrolled, and with a token of its own.
    pub async fn enrol(http: &Http, name: &str) -> Node {
        let made = http.post(&admin("/nodes"), json!({ "name": name })).await.with(201);
        let token = made["enrolment_token"].as_str().expect("a token");
        let key = Key::generate();
        let enrolled =
            http.bearing("").post("/internal/v1/nodes/enroll", enrolment(token, &key)).await.with(200);
        let id: Uuid = enrolled["node_id"].as_str().expect("an id").parse().expect("a uuid");
        let keyring = serde_json::from_value(enrolled["keyring"].clone()).expect("a keyring");
        let token = Node::token(http, id, &key).await.with(200);
        let http = http.bearing(token["access_token"].as_str().expect("a token"));
        Node { id, key, keyring, http }
    }

    /// Asks for a token with an assertion made for it.
    pub async fn token(http: &Http, id: Uuid, key: &Key) -> Answer {
        let assertion = assert_identity(key, id, PLATFORM, http.realm.now());
        let body = json!({ "key_id": key.id(), "assertion": assertion.expose() });
        http.bearing("").post(&format!("/internal/v1/nodes/{id}/token"), body).await
    }

    pub fn path(&self, path: &str) -> String {
        format!("/internal/v1/nodes/{}{path}", self.id)
    }

    /// The next task as it travels, if there is one within the time.
    pub async fn next(&self, wait: &str) -> Option<Signed> {
        let answer = self.http.get(&self.path(&format!("/tasks/wait?wait={wait}"))).await.with(200);
        serde_json::from_value(answer["task"].clone()).expect("a signed task or none")
    }

    /// The next task, believed.
    pub async fn takes(&self, wait: &str) -> Envelope {
        let signed = self.next(wait).await.expect("a task");
        Envelope::open(&signed, &self.keyring, self.id).expect("a task that is to be believed")
    }

    pub async fn answers(&self, task: &Envelope, outcome: &Outcome) -> Answer {
        let body = json!({ "idempotency_key": task.idempotency_key, "outcome": outcome });
        self.http.post(&self.path(&format!("/tasks/{}/result", task.task_id)), body).await
    }

    /// Takes the launch of one container and says that it runs, and whether it was seen serving.
    pub async fn launches(&self, serves: bool) {
        let task = self.takes("10s").await;
        let Ok(Task::OciLaunch(launch)) = Task::read(&task.kind, &task.input) else {
            panic!("no launch but {}", task.kind)
        };
        let workload = launch.workload;
        let launched = Launched {
            member: workload.member,
            container_id: "c".into(),
            digest: workload.image.digest,
            ports: workload.ports.iter().map(|port| (port.name.clone(), port.host)).collect(),
            serves,
        };
        let output = Output::Launched { members: vec![launched] };
        self.answers(&task, &Outcome::Succeeded { output }).await.with(200);
    }

    /// What an agent finds after it did the removal, all of it.
    pub fn finds(&self, task: &Envelope) -> Evidence {
        let Ok(Task::OciRemove(remove)) = Task::read(&task.kind, &task.input) else {
            panic!("no removal but {}", task.kind)
        };
        Evidence {
            node_id: self.id,
            instance_id: remove.instance_id,
            task_id: task.task_id,
            generations: remove.generations,
            driver: "simulated".into(),
            removed: vec![],
            remaining: vec![],
            observed_at: self.http.realm.now(),
        }
    }

    /// That the removal was done, as the evidence says.
    pub fn swears(&self, evidence: &Evidence) -> Outcome {
        let evidence = Signed::sign(evidence, &self.key).expect("a signature");
        Outcome::Succeeded { output: Output::Removed { evidence } }
    }

    pub async fn beats(&self, sequence: i64, workloads: Value) -> Answer {
        let body = json!({ "sequence": sequence, "agent_version": "test", "workloads": workloads });
        self.http.send(Method::POST, &self.path("/heartbeat"), &[], Some(body)).await
    }
}

/// Eight GPUs, so that there is something to share.
pub fn enrolment(token: &str, key: &Key) -> Value {
    let gpus: Vec<Value> = (0..8)
        .map(|index| json!({ "index": index, "sku": "H100-80GB", "accelerator": "nvidia", "memory_gib": 80 }))
        .collect();
    json!({
        "enrolment_token": token, "public_key": key.public().to_pem().expect("a key"), "address": "127.0.0.1",
        "driver": "simulated", "agent_version": "test",
        "inventory": { "cpu_cores": 64, "memory_gib": 512, "gpus": gpus },
    })
}
