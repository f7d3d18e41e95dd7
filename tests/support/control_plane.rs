//! The platform as it runs: its own workflows on its own workers, spoken to over HTTP. `end` checks every promise.

use std::ops::Deref;
use std::sync::Arc;

use activities::Env;
use engine::Workers;

use super::story::{Story, quick};
use crate::http::Http;

pub struct Platform {
    pub story: Story,
    pub http: Http,
    workers: Workers,
}

impl Platform {
    pub async fn new() -> Platform {
        let story = Story::idle(quick(), None).await;
        let env = Arc::new(Env::new(story.engine.clone()));
        let workers = Workers::start(&story.engine, env, workflows::registry());
        let http = Http::over(&story).await;
        Platform { story, http, workers }
    }

    pub async fn end(self) {
        self.workers.stop().await;
        self.story.end().await;
    }
}

/// Speaks as the platform's superadmin.
impl Deref for Platform {
    type Target = Http;
    fn deref(&self) -> &Http {
        &self.http
    }
}
