//! A bill is taken along as a file and checked without a server; one that was tampered with does not hold.

use serde_json::{Value, json};
use uuid::Uuid;

use super::ledger::{priced, rolled_up};
use super::office::Office;
use crate::cli::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn a_bill_holds_without_a_server_and_a_forged_one_does_not() {
    let office = Office::open().await;
    priced(&office).await;
    office.tell(&[office.event("a", 10).await, office.event("b", 7).await]).await.with(200);
    rolled_up(&office).await;
    office.tell(&[office.event("late", 5).await]).await.with(200);
    rolled_up(&office).await;
    let viewer = office.platform.http.acting("viewer");
    let server = viewer.listen().await;
    let shell = Shell::at(server.address, viewer.token());
    let file = shell.path("bill.json");
    let file = file.to_str().unwrap();
    let said = shell.ask(&["bill", "export", "--to", file]).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    server.close().await;
    let said = shell.ask(&["bill", "verify", file, "-o", "json"]).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&report["balance_minor"], &report["records"]), (&json!(-33), &json!(3)));
    assert_eq!((&report["pending"], &report["unpriced"]), (&json!({}), &json!({})));
    let honest: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for (pointer, value) in [
        ("/entries/0/amount_minor", json!(-1)),
        ("/usage/0/quantity", json!(1)),
        ("/prices/0/amount_minor", json!(1)),
        ("/balance/balance_minor", json!(0)),
        ("/balance/currency", json!("JPY")),
        ("/usage/0/rated", json!(false)),
        ("/prices/0/effective_from", json!("2999-01-01T00:00:00Z")),
        ("/prices/0/created_at", json!("2999-01-01T00:00:00Z")),
    ] {
        let mut forged = honest.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        refused(&shell, &forged, pointer).await;
    }
    let mut unrated = honest.clone();
    for record in unrated["usage"].as_array_mut().unwrap() {
        record["rated"] = json!(false);
        record["quantity"] = json!(1_000);
    }
    refused(&shell, &unrated, "what is said not to be rated was charged").await;
    for record in unrated["usage"].as_array_mut().unwrap() {
        record["price_id"] = json!(null);
        record["rated_quantity"] = json!(null);
    }
    refused(&shell, &unrated, "nor does it become free").await;
    let mut cheaper = honest.clone();
    let mut other = cheaper["prices"][0].clone();
    (other["id"], other["version"]) = (json!(Uuid::now_v7()), json!(2));
    cheaper["prices"].as_array_mut().unwrap().push(other);
    refused(&shell, &cheaper, "another price was in force all along").await;
    let mut shortened = honest.clone();
    shortened["usage"].as_array_mut().unwrap().pop();
    refused(&shell, &shortened, "a record is missing").await;
    office.close().await;
}

async fn refused(shell: &Shell, forged: &Value, why: &str) {
    let file = shell.path("forged.json");
    std::fs::write(&file, forged.to_string()).unwrap();
    let said = shell.ask(&["bill", "verify", file.to_str().unwrap()]).await;
    assert_eq!(said.code, Some(6), "{why}: {said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bill_says_what_it_leaves_out() {
    let office = Office::open().await;
    priced(&office).await;
    office.tell(&[office.event("a", 10).await]).await.with(200);
    rolled_up(&office).await;
    let now = office.now().await;
    // Late for a window that was charged, and early for one that is not over.
    let late = office.event_at("b", 7, now - chrono::TimeDelta::seconds(61));
    office.tell(&[late, office.event_at("c", 5, now)]).await.with(200);
    let viewer = office.platform.http.acting("viewer");
    let server = viewer.listen().await;
    let shell = Shell::at(server.address, viewer.token());
    let file = shell.path("bill.json");
    let file = file.to_str().unwrap();
    let said = shell.ask(&["bill", "export", "--to", file]).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    server.close().await;
    let said = shell.ask(&["bill", "verify", file, "-o", "json"]).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (&report["balance_minor"], &report["pending"]["tokens"]),
        (&json!(-15), &json!(12)),
        "{report:#}"
    );
    office.close().await;
}
