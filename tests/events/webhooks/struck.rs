//! Delivering survives being struck anywhere: in the end the receiver has every event.

use std::sync::Arc;

use activities::{Env, TaskSigners};
use clients::seal::Sealer;
use domain::Secret;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use store::webhooks::sealed_for;
use uuid::Uuid;
use workflows::webhook::DeliverWebhook;

use super::office::{Receiver, sender};
use crate::lifecycle::{let_time_pass, wait_for};
use crate::support::database::TestDatabase;

const WEBHOOK: Uuid = Uuid::from_u128(7);

#[tokio::test(flavor = "multi_thread")]
async fn delivering_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: DeliverWebhook { webhook_id: WEBHOOK },
        fresh_env: two_events,
        leftovers: delivered,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

/// A webhook with a receiver of its own and two events that it was not sent yet.
fn two_events(engine: &Engine) -> Arc<Env> {
    let sealer = Sealer::from_lines(Sealer::generate_line("story").expose()).unwrap();
    let secret = Secret::new(clients::webhook::new_secret().expose().clone().into_bytes());
    let sealed = sealer.seal(&secret, &sealed_for(WEBHOOK)).unwrap();
    wait_for(async {
        // It serves until the story ends.
        let url = Receiver::open().await.url();
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
            "insert into organizations (id, slug, display_name) values ('{WEBHOOK}', 'org', 'org') on conflict do nothing;
             insert into projects (id, org_id, slug, display_name) values ('{WEBHOOK}', '{WEBHOOK}', 'project', 'p')
                 on conflict do nothing;
             insert into policies (layer, scope_id, key, value, updated_by)
                 values ('project', '{WEBHOOK}', 'webhooks.allow_private_addresses', 'true', '{WEBHOOK}') on conflict do nothing;
             delete from webhooks; delete from outbox; delete from event_counters;
             insert into webhooks (id, org_id, project_id, url, event_types, secret, position, created_by)
                 values ('{WEBHOOK}', '{WEBHOOK}', '{WEBHOOK}', '{url}', '{{}}', '{sealed}', 0, '{WEBHOOK}');
             insert into outbox (id, project_id, org_id, type, subject, data, correlation_id)
                 select gen_random_uuid(), '{WEBHOOK}', '{WEBHOOK}', 'apps.version.staged', n::text, '{{}}', 'c-struck'
                 from generate_series(1, 2) n",
        )))
        .execute(engine.pool().bare())
        .await
        .expect("a webhook");
        workflows::sequencer::number_all(engine.pool()).await.expect("numbers");
    });
    Arc::new(Env::new(engine.clone()).with_signers(TaskSigners::new(sealer)).with_webhooks(sender()))
}

fn delivered(env: &Env) -> Vec<String> {
    let all = sqlx::query_scalar(
        "select seq || ' ' || status || ' ' || attempts from webhook_deliveries order by seq",
    );
    wait_for(all.fetch_all(env.pool().bare())).expect("the deliveries")
}
