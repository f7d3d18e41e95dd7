//! Which one is meant: an id, or as much of its beginning as tells it from the others.

use api_types::{Page, WorkflowRun};
use uuid::Uuid;

use super::client::Client;
use crate::failure::Failure;

/// Shorter beginnings say nothing: ids begin with the time they were made.
const SHORTEST: usize = 4;
/// Among how many pages of the newest runs a beginning is looked up.
const PAGES: usize = 5;

pub async fn workflow(client: &Client, text: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let wanted = text.to_ascii_lowercase();
    if wanted.len() < SHORTEST || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Err(Failure::usage(format!(
            "{text} is neither the id of a run nor at least {SHORTEST} letters of one"
        )));
    }
    let path = client.in_project("/workflows")?;
    let mut found = Vec::new();
    let mut query = vec![("limit", "200".to_owned())];
    for _ in 0..PAGES {
        let page: Page<WorkflowRun> = client.get(&path, &query).await?;
        found.extend(
            page.items.into_iter().map(|run| run.id).filter(|id| id.to_string().starts_with(&wanted)),
        );
        let Some(cursor) = page.next_cursor else { break };
        query = vec![("limit", "200".to_owned()), ("cursor", cursor)];
    }
    match found.as_slice() {
        [only] => Ok(*only),
        [] => Err(Failure::not_found(format!("no recent run's id begins with {text}"))),
        several => {
            Err(Failure::usage(format!("{} runs begin with {text}: write more of the id", several.len())))
        }
    }
}
