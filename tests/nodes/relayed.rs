//! What workloads do through their node's relay is counted at the node's own address: one that fails again and again costs neither
//! its node nor its neighbours anything.

use std::net::Ipv4Addr;

use agent::{Network, RELAY_PORT, Simulated};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::Http;
use crate::identity::service_accounts;
use crate::support::agent::{RunningAgent, now_of, token};
use crate::support::story::Story;

/// What the platform allows an address within a minute, here.
const BUDGET: u32 = 100;

/// An instance's network, whose relay is reached from this machine.
fn network(last: u8) -> Network {
    Network { gateway: Ipv4Addr::new(127, 0, 79, last).into(), prefix: 8 }
}

fn url(network: Network, path: &str) -> String {
    format!("http://{}:{RELAY_PORT}/api/v1{path}", network.gateway)
}

/// With a token that is nobody's; waits for the relay, which the agent opens in its own time.
async fn fails(client: &Client, network: Network) -> Response {
    loop {
        let asked = client.get(url(network, "/me")).bearer_auth("garbage").send().await;
        match asked {
            Err(error) if error.is_connect() => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await
            }
            answered => return answered.unwrap(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_fails_on_and_on_keeps_neither_its_node_nor_its_neighbours_from_their_tokens() {
    let story = Story::new().await;
    let http = Http::with(&story, |state| state.limiting_strangers(BUDGET)).await;
    let platform = http.listen().await;
    let [loud, quiet] = [1, 2].map(network);
    let driver = Simulated::new().with_networks(vec![(Uuid::now_v7(), loud), (Uuid::now_v7(), quiet)]);
    let joins = token(&http, "gpu-1").await;
    let address = format!("http://{}", platform.address);
    let agent = RunningAgent::join(&address, &joins, &driver, now_of(&http)).await;

    let client = Client::builder().no_proxy().build().unwrap();
    let mut answers = Vec::new();
    for _ in 0..2 * BUDGET {
        answers.push(fails(&client, loud).await);
    }
    let passed_on = answers.iter().filter(|answer| answer.status() == 401).count();
    assert!(passed_on < BUDGET as usize / 2, "{passed_on} of {} went on to the platform", answers.len());
    let last = answers.pop().unwrap();
    assert!((1..=60).contains(&last.headers()["retry-after"].to_str().unwrap().parse().unwrap()));
    let said: Value = last.json().await.unwrap();
    assert_eq!(said["code"], "rate_limited", "{said}");

    let made = service_accounts::make(&http, json!({ "name": "neighbour" })).await;
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    for _ in 0..BUDGET {
        let minted =
            client.post(url(quiet, "/auth/service-account/token")).json(&proof).send().await.unwrap();
        assert_eq!(minted.status(), 200, "{:?}", minted.text().await);
    }

    let agent = RunningAgent::again(&http, agent.kill().await, &driver);
    let reported = "select report_sequence > $2[1]::bigint from nodes where id = $1";
    let seen: i64 = sqlx::query_scalar("select report_sequence from nodes where id = $1")
        .bind(agent.id)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    story.until_true("the node proves itself and reports", reported, agent.id, &[&seen.to_string()]).await;
    agent.end().await;
    platform.close().await;
    story.end().await;
}
