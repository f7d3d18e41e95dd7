//! A bill is taken along as a file and checked without a server; one that was tampered with does not hold.

use serde_json::{Value, json};

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
    let honest: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    for (pointer, value) in [
        ("/entries/0/amount_minor", json!(-1)),
        ("/usage/0/quantity", json!(1)),
        ("/prices/0/amount_minor", json!(1)),
        ("/balance/balance_minor", json!(0)),
    ] {
        let mut forged = honest.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        std::fs::write(file, forged.to_string()).unwrap();
        let said = shell.ask(&["bill", "verify", file]).await;
        assert_eq!(said.code, Some(6), "{pointer}: {said:?}");
    }
    office.close().await;
}
