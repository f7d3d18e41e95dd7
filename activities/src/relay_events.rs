//! Passes a project's events on to the stream outside, in their order. It may be repeated and cut off anywhere: the stream
//! says how far it got, and takes an event only after the one before it. A stream that was lost and made again gets everything
//! that is kept once more, from the oldest on: who listens there may not have had it yet, and knows repetitions by their id.

use std::time::{Duration, Instant};

use clients::nats::{EventStream, NatsFault};
use engine::Pool;
use sqlx::PgConnection;
use store::event_relays::{self, Reached};
use store::outbox::{self, Filter};
use uuid::Uuid;

/// The most that is passed on while the project's row is held.
const BATCH: i64 = 500;
/// A batch ends here; the database would end a transaction that idles longer.
const LONGEST: Duration = Duration::from_secs(4);

#[derive(Debug, thiserror::Error)]
pub enum RelayFault {
    #[error(transparent)]
    Nats(#[from] NatsFault),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Passes on the next events of a project. Answers how many, or nothing while another process does it.
pub async fn relay(pool: &Pool, stream: &EventStream, project: Uuid) -> Result<Option<u64>, RelayFault> {
    let mut tx = pool.begin().await?;
    let Some(held) = event_relays::hold(&mut tx, project).await? else { return Ok(None) };
    let made = stream.made().await?;
    let mut place = stream.last(project).await?;
    // Between the two requests it may have been made again, and a place in one stream is none in the other.
    if stream.made().await? != made {
        return Err(NatsFault::Away("the stream was made again meanwhile".to_owned()).into());
    }
    let from = noted(&mut tx, project, held, made).await?.max(place.event);
    let filter = Filter { project_id: project, after: from, limit: BATCH, ..Filter::default() };
    let events = outbox::told(&mut tx, &filter).await?;
    let (began, mut sent, mut reached) = (Instant::now(), 0, from);
    let mut ended = Ok(());
    for event in &events {
        match stream.send(project, event, place.message).await {
            Ok(message) => place.message = message,
            Err(fault) => {
                ended = Err(fault);
                break;
            }
        }
        (sent, reached) = (sent + 1, event.seq());
        if began.elapsed() > LONGEST {
            break;
        }
    }
    if (reached, Some(made)) != (held.position, held.stream_made) {
        event_relays::reached(&mut tx, project, reached, made).await?;
    }
    tx.commit().await?;
    ended?;
    Ok(Some(sent))
}

/// The last event that this stream had by our own notes; what they say of another stream says nothing of this one.
async fn noted(conn: &mut PgConnection, project: Uuid, held: Reached, made: i64) -> sqlx::Result<i64> {
    match held.stream_made {
        Some(other) if other != made => Ok(outbox::extent(conn, project).await?.forgotten),
        _ => Ok(held.position),
    }
}
