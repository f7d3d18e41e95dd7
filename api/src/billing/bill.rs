//! `GET /billing/bill`: the ledger, the usage it follows from and the prices, all as of one moment, so that whoever takes it
//! along can check it. It is written piece by piece from one snapshot, however long it is; one that breaks off is no JSON.

use std::fmt::Write as _;
use std::io;

use api_types::Bill;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use futures::{TryFutureExt as _, stream};
use serde::Serialize;
use sqlx::PgTransaction;
use store::usage_records::{self, Filter};
use store::{Slice, billing_ledger, prices, server};
use tokio::sync::{Semaphore, SemaphorePermit};
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
/// Each holds a connection for as long as its reader takes; whoever comes later waits without one.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

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
    let permit = AT_ONCE.acquire().await.map_err(|closed| ApiError::internal(&closed))?;
    let mut tx = state.read().await?;
    let owner = whose.place(&state, &mut tx, &caller).await?;
    let (as_of, balance) = (server::now(&mut tx).await?, balance_of(&mut tx, owner).await?);
    let (moment, balance) = (text(&as_of)?, text(&balance)?);
    let head = format!("{{\"as_of\":{moment},\"balance\":{balance},\"entries\":[");
    let writer = Writer { tx, project: owner.1, part: Part::Head(head), first: true, _permit: permit };
    let broken_off = |error: ApiError| io::Error::other(error.message);
    let pieces = stream::try_unfold(writer, move |writer: Writer| writer.next().map_err(broken_off));
    let body = Body::from_stream(pieces);
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
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
    _permit: SemaphorePermit<'static>,
}

impl Writer {
    async fn next(mut self) -> Result<Option<(String, Writer)>, ApiError> {
        let (piece, next) = match std::mem::replace(&mut self.part, Part::End) {
            Part::Head(head) => (head, Part::Entries(0)),
            Part::Entries(after) => self.entries(after).await?,
            Part::Usage(after) => self.usage(after).await?,
            Part::Prices => self.prices().await?,
            Part::End => return Ok(None),
        };
        self.part = next;
        Ok(Some((piece, self)))
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
