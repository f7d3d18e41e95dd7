//! What was used, and the bill that anybody can check.

use serde_json::Value;

use super::Stage;
use crate::billing::ledger::{priced, rolled_up};
use crate::billing::office::Office;
use crate::cli::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn every_command_about_money() {
    let office = Office::open().await;
    priced(&office).await;
    office.tell(&[office.event("a", 10).await, office.event("b", 6).await]).await.with(200);
    rolled_up(&office).await;
    let viewer = office.platform.http.acting("viewer");
    let server = viewer.listen().await;
    let shell = Shell::at(server.address, viewer.token());
    let stage = Stage::of(&shell);
    stage.shows("usage", &["usage", "writer"], &["usage", "--by", "colour"]).await;
    let (file, nowhere) = (shell.path("bill.json").display().to_string(), "/no/such/folder/bill.json");
    stage
        .shows("bill_export", &["bill", "export", "--to", &file], &["bill", "export", "--to", nowhere])
        .await;
    let yaml = shell.ask(&["bill", "export", "-o", "yaml"]).await;
    assert!(yaml.code == Some(0) && yaml.stdout.starts_with("as_of: "), "{yaml:?}");
    let name = shell.ask(&["bill", "export", "-o", "name"]).await;
    assert_eq!(name.stdout, format!("{}\n", crate::support::realm::EXAMPLE));
    server.close().await;
    office.close().await;

    let mut forged: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    forged["usage"].as_array_mut().unwrap().pop();
    let other = shell.path("forged.json").display().to_string();
    std::fs::write(&other, forged.to_string()).unwrap();
    stage.shows("bill_verify", &["bill", "verify", &file], &["bill", "verify", &other]).await;
}
