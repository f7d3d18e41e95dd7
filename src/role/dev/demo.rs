//! A few runs to look at in a new `gpuaas dev`: one that succeeds after retries, one that waits for a word, one that
//! unwinds. Their start keys make them once, however often `dev` is started on the data.

use engine::{Engine, Start, StartError};
use workflows::demo::Tour;

use super::ready::{ORG_ID, PROJECT_ID};

pub async fn start(engine: &Engine) -> Result<(), StartError> {
    let tours = [
        Tour { thing: "lamp".into(), busy_tries: 2, wait_seconds: 3, fits: true },
        Tour { thing: "clock".into(), busy_tries: 0, wait_seconds: 24 * 3600, fits: true },
        Tour { thing: "shelf".into(), busy_tries: 0, wait_seconds: 1, fits: false },
    ];
    let mut started = Vec::new();
    let mut transaction = engine.pool().begin().await?;
    for tour in &tours {
        let name = format!("demo-tour-{}", tour.thing);
        let options = Start {
            project_id: PROJECT_ID,
            org_id: Some(ORG_ID),
            correlation_id: name.clone(),
            start_key: Some(name),
            ..Start::default()
        };
        started.push(engine.start(&mut transaction, tour, options).await?);
    }
    transaction.commit().await?;
    for mut tour in started {
        tour.begin();
    }
    Ok(())
}
