//! `GET /billing/bill`: the ledger, the usage it follows from and the prices, all as of one moment, so that whoever takes it
//! along can check it. It is written piece by piece from one snapshot, however long it is; one that breaks off is no JSON. Whoever
//! reads too slowly holds up others of the same project alone, and not for long.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use api_types::Bill;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use futures::stream;
use serde::Serialize;
use sqlx::PgTransaction;
use store::usage_records::{self, Filter};
use store::{Slice, billing_ledger, prices, server};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc};
use tracing::debug;
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use super::ledger::balance_of;
use super::{Whose, usage};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as};
use crate::error::ApiError;
use crate::params::Params;
use crate::prices::shown;
use crate::state::State;

/// So many rows are held in memory.
const PIECE: i64 = 500;
/// A reader must take a piece within this time; the database would end a transaction that idles longer.
const TAKEN_WITHIN: Duration = Duration::from_secs(8);
/// Each holds a connection for as long as its reader takes; whoever comes later waits without one.
static AT_ONCE: Semaphore = Semaphore::const_new(4);
/// Those that are being written: of each project one, so that its readers wait for each other and for nobody else.
static OF_PROJECTS: Mutex<BTreeMap<Uuid, Weak<Semaphore>>> = Mutex::new(BTreeMap::new());

pub(crate) fn bill() -> Endpoint {
    Endpoint::new("get_bill", "Everything that the balance follows from, as of one moment", written)
        .of_a_project()
        .query("project_id", text_as(KnownFormat::Uuid), "The project.")
        .answers::<Bill>(200, "The bill. `gpuaas bill verify` checks it without a server.")
        .refuses(&[ErrorCode::ProjectNotFound])
}

async fn written(
    Shared(state): Shared<State>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, ApiError> {
    let whose = Whose::project(&mut params, &headers);
    params.finish()?;
    let mut tx = state.read().await?;
    let owner = whose.place(&state, &mut tx, &caller).await?;
    tx.rollback().await?;
    let turn = Turn::wait(owner.1).await?;
    let mut tx = state.read().await?;
    let (as_of, balance) = (server::now(&mut tx).await?, balance_of(&mut tx, owner).await?);
    let (moment, balance) = (text(&as_of)?, text(&balance)?);
    let head = format!("{{\"as_of\":{moment},\"balance\":{balance},\"entries\":[");
    let writer = Writer { tx, project: owner.1, part: Part::Head(head), first: true };
    let (pieces, taken) = mpsc::channel(1);
    tokio::spawn(write(writer, pieces, turn));
    let body = Body::from_stream(stream::try_unfold(taken, |mut taken| async move {
        match taken.recv().await {
            Some(Some(piece)) => Ok(Some((piece, taken))),
            Some(None) => Ok(None),
            None => Err(io::Error::other("the bill broke off")),
        }
    }));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Hands the pieces over as they are taken, and nothing last. A reader who takes too long, or left, ends it: the connection
/// goes back, and so does the turn.
async fn write(mut writer: Writer, pieces: mpsc::Sender<Option<String>>, _turn: Turn) {
    loop {
        let piece = match writer.next().await {
            Ok(piece) => piece,
            Err(error) => return debug!(error = error.message, "a bill broke off"),
        };
        let ended = piece.is_none();
        if pieces.send_timeout(piece, TAKEN_WITHIN).await.is_err() || ended {
            return;
        }
    }
}

/// May write a bill.
struct Turn {
    _of_project: OwnedSemaphorePermit,
    _at_once: SemaphorePermit<'static>,
}

impl Turn {
    async fn wait(project: Uuid) -> Result<Turn, ApiError> {
        let of_project = {
            let mut all = OF_PROJECTS.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|_, one| one.strong_count() > 0);
            let known = all.get(&project).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let one = Arc::new(Semaphore::new(1));
                all.insert(project, Arc::downgrade(&one));
                one
            })
        };
        let closed = |closed: AcquireError| ApiError::internal(&closed);
        let _of_project = of_project.acquire_owned().await.map_err(closed)?;
        let _at_once = AT_ONCE.acquire().await.map_err(closed)?;
        Ok(Turn { _of_project, _at_once })
    }
}

/// What is to be written next.
enum Part {
    Head(String),
    /// After the entry of this number.
    Entries(i64),
    /// After the record of this id.
    Usage(Option<Uuid>),
    Prices,
    End,
}

struct Writer {
    tx: PgTransaction<'static>,
    project: Uuid,
    part: Part,
    /// Whether nothing of the present list was written yet.
    first: bool,
}

impl Writer {
    async fn next(&mut self) -> Result<Option<String>, ApiError> {
        let (piece, next) = match std::mem::replace(&mut self.part, Part::End) {
            Part::Head(head) => (head, Part::Entries(0)),
            Part::Entries(after) => self.entries(after).await?,
            Part::Usage(after) => self.usage(after).await?,
            Part::Prices => self.prices().await?,
            Part::End => return Ok(None),
        };
        self.part = next;
        Ok(Some(piece))
    }

    async fn entries(&mut self, after: i64) -> Result<(String, Part), ApiError> {
        let entries = billing_ledger::list(&mut self.tx, self.project, after, PIECE).await?;
        match entries.last().map(|entry| entry.seq) {
            Some(last) => Ok((self.items(&entries)?, Part::Entries(last))),
            None => Ok((self.list("usage"), Part::Usage(None))),
        }
    }

    async fn usage(&mut self, after: Option<Uuid>) -> Result<(String, Part), ApiError> {
        let all = Filter { project: self.project, instance: None, source: None, from: None, to: None };
        let records = usage_records::list(&mut self.tx, &all, Slice { after, limit: PIECE }).await?;
        match records.last().map(|record| record.id) {
            Some(last) => {
                let records: Vec<_> = records.into_iter().map(usage::shown).collect();
                Ok((self.items(&records)?, Part::Usage(Some(last))))
            }
            None => Ok((self.list("prices"), Part::Prices)),
        }
    }

    async fn prices(&mut self) -> Result<(String, Part), ApiError> {
        let prices = prices::applying(&mut self.tx, self.project).await?;
        let prices: Vec<_> = prices.into_iter().map(shown).collect();
        Ok((self.items(&prices)? + "]}", Part::End))
    }

    /// Ends the present list and begins another.
    fn list(&mut self, name: &str) -> String {
        self.first = true;
        format!("],\"{name}\":[")
    }

    fn items<T: Serialize>(&mut self, items: &[T]) -> Result<String, ApiError> {
        let mut written = String::new();
        for item in items {
            let comma = if std::mem::take(&mut self.first) { "" } else { "," };
            let _ = write!(written, "{comma}{}", text(item)?);
        }
        Ok(written)
    }
}

fn text<T: Serialize>(value: &T) -> Result<String, ApiError> {
    serde_json::to_string(value).map_err(|error| ApiError::internal(&error))
}
