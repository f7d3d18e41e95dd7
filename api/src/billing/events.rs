//! `POST P/usage-events`: what apps counted. Every event gets its own verdict, and one that is wrong fails no other; all
//! that are accepted are written together.

use std::collections::{BTreeMap, HashMap, HashSet};

use api_types::{UsageBatch, UsageEvent, UsageResult, UsageResults, UsageVerdict};
use axum::body::Bytes;
use axum::extract::{Request, State as Shared};
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use domain::manifest::MeteringKind;
use domain::price::{Price, Priced, choose};
use domain::rating::MOST_OF_A_SERIES;
use domain::{ErrorCode, PolicyKey, UsageSource, Window, metering};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::policies::{self, Subject};
use store::usage_records::{self, NewRecord};
use store::usage_subjects::{self, UsageSubject};
use store::{meters, prices, server};
use uuid::Uuid;

use super::report::{Report, Told};
use crate::body::{self, ReadBody};
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::state::State;

/// Clocks of apps may be ahead by this much.
const AHEAD: TimeDelta = TimeDelta::seconds(300);
const MOST_METADATA: usize = 4096;
const VERDICTS: [UsageVerdict; 3] = [UsageVerdict::Accepted, UsageVerdict::Duplicate, UsageVerdict::Rejected];
/// In minor units; a thousand of them fit into a month of one thing.
const MOST_OF_AN_EVENT: i64 = MOST_OF_A_SERIES / 1000;

pub(crate) fn usage_events() -> Endpoint {
    Endpoint::new("report_usage", "Tell what an app counted: a batch of CloudEvents", tell)
        .body::<UsageBatch>()
        .answers::<UsageResults>(200, "A verdict for each event, in the order of the batch.")
}

/// The events as they were sent: the list alone is checked, each event is judged by the handler.
struct Events(Vec<Value>);

impl ReadBody for Events {
    async fn read(request: Request) -> Result<(Bytes, Events), ApiError> {
        let (bytes, value) = body::read_json(request).await?;
        match value {
            Value::Array(events) if events.len() <= UsageBatch::MOST => Ok((bytes, Events(events))),
            Value::Array(_) => {
                Err(ApiError::invalid("", format!("must have at most {} items", UsageBatch::MOST)))
            }
            _ => Err(ApiError::invalid("", "must be of type array")),
        }
    }
}

async fn tell(Shared(state): Shared<State>, mut change: Mutation<Events>) -> Result<Response, ApiError> {
    let events = std::mem::take(&mut change.body.0);
    let caller = change.caller.clone();
    let judge = Judge::new(&mut change.tx, &caller, &events).await?;
    let reports: Vec<Result<Report, String>> = events.iter().map(|event| judge.judge(event)).collect();
    let results = write(&mut change.tx, judge.project, &events, reports).await?;
    let count = |verdict: UsageVerdict| results.iter().filter(|result| result.verdict == verdict).count();
    let [accepted, duplicate, rejected] = VERDICTS.map(count);
    let told = Change::of("usage", judge.project)
        .to(&json!({ "accepted": accepted, "duplicate": duplicate, "rejected": rejected }));
    let answer = change.commit(told, Answer::ok(&UsageResults { results })?).await?;
    // What was not committed was not judged.
    for (verdict, events) in VERDICTS.into_iter().zip([accepted, duplicate, rejected]) {
        state.metrics.usage(verdict, events as u64);
    }
    Ok(answer)
}

/// Writes what was accepted. What was told before, in this batch or an earlier one, is a duplicate.
async fn write(
    conn: &mut PgConnection,
    project: Uuid,
    events: &[Value],
    reports: Vec<Result<Report, String>>,
) -> Result<Vec<UsageResult>, ApiError> {
    let (mut verdicts, mut left) = (Vec::with_capacity(events.len()), BTreeMap::new());
    for (place, report) in reports.into_iter().enumerate() {
        verdicts.push(report.map(|report| {
            left.insert(place, report);
            UsageVerdict::Accepted
        }));
    }
    // A server of the release before takes no turns: where it was quicker to write under a name, this is judged again.
    while !left.is_empty() {
        let (mut told, mut new) = (Told::before(conn, project, left.values()).await?, Vec::new());
        for (place, report) in &left {
            verdicts[*place] = told.judge(report).map(|record| match record {
                Some(record) => {
                    new.push(record);
                    UsageVerdict::Accepted
                }
                None => UsageVerdict::Duplicate,
            });
        }
        let added = usage_records::add(conn, &new).await?;
        new.retain(|record| !added.contains(&record.id));
        left.retain(|_, report| new.iter().any(|record| record.id == report.record.id));
    }
    let result = |(event, verdict): (&Value, Result<UsageVerdict, String>)| {
        let (verdict, reason) = match verdict {
            Ok(verdict) => (verdict, None),
            Err(reason) => (UsageVerdict::Rejected, Some(reason)),
        };
        UsageResult { id: event["id"].as_str().map(str::to_owned), verdict, reason }
    };
    Ok(events.iter().zip(verdicts).map(result).collect())
}

/// All that must be known to judge the events of a batch.
struct Judge {
    org: Uuid,
    project: Uuid,
    now: DateTime<Utc>,
    late: TimeDelta,
    window_seconds: i64,
    /// The one instance that the caller is, if it is one.
    own: Option<Uuid>,
    subjects: HashMap<Uuid, UsageSubject>,
    /// What apps' usage costs.
    prices: Vec<Price>,
    correlation_id: String,
}

impl Judge {
    async fn new(conn: &mut PgConnection, caller: &Caller, events: &[Value]) -> Result<Judge, ApiError> {
        let (Some(org), Some(project)) = (caller.scope.org(), caller.scope.project()) else {
            return Err(ApiError::plain(ErrorCode::ProjectNotFound));
        };
        let here = Subject { user: None, project: Some(project), org: Some(org) };
        let named: HashSet<Uuid> =
            events.iter().filter_map(|event| event["subject"].as_str()?.parse().ok()).collect();
        let named: Vec<Uuid> = named.into_iter().collect();
        let late = policies::whole_number(conn, PolicyKey::LateEventSeconds, here).await?;
        let subjects = usage_subjects::of(conn, project, &named).await?;
        let mut prices = prices::all(conn).await?;
        prices.retain(|price| price.usage_source == UsageSource::AppRuntime);
        Ok(Judge {
            org,
            project,
            now: server::now(conn).await?,
            late: TimeDelta::seconds(late),
            window_seconds: meters::window_seconds(conn, (org, project)).await?,
            own: caller.standing.instance,
            subjects: subjects.into_iter().map(|subject| (subject.instance, subject)).collect(),
            prices,
            correlation_id: caller.context.correlation_id.to_string(),
        })
    }

    /// The report that the event is, or why it is none.
    fn judge(&self, event: &Value) -> Result<Report, String> {
        if has_nul(event) {
            return Err("invalid: a text holds the character NUL".to_owned());
        }
        let event: UsageEvent =
            serde_json::from_value(event.clone()).map_err(|error| format!("invalid: {error}"))?;
        if let Some(problem) = problem(&event) {
            return Err(format!("invalid: {problem}"));
        }
        if self.own.is_some_and(|own| own != event.subject) {
            return Err("not_your_instance: an instance tells of its own usage alone".to_owned());
        }
        let subject = self.subjects.get(&event.subject);
        let subject = subject.ok_or_else(|| format!("unknown_instance: {}", event.subject))?;
        unit(subject, &event.data.usage_unit)?;
        self.in_time(event.time)?;
        self.within_reason(subject, &event)?;
        Ok(Report { record: self.record(subject, event), by_itself: self.own.is_some() })
    }

    fn in_time(&self, time: DateTime<Utc>) -> Result<(), String> {
        if time < self.now - self.late {
            return Err(format!("too_late: usage is taken for {} s", self.late.num_seconds()));
        }
        if time > self.now + AHEAD {
            return Err(format!("in_the_future: clocks may be ahead by {} s", AHEAD.num_seconds()));
        }
        Ok(())
    }

    /// One event cannot cost so much that nobody could count it.
    fn within_reason(&self, subject: &UsageSubject, event: &UsageEvent) -> Result<(), String> {
        let priced = Priced {
            usage_source: UsageSource::AppRuntime,
            usage_unit: &event.data.usage_unit,
            app_slug: subject.of.app_slug.as_deref(),
            sku: None,
            at: Window::of(event.time, self.window_seconds).start,
        };
        match choose(&self.prices, &priced) {
            Some(price) if price.rate.cost(event.data.quantity) > MOST_OF_AN_EVENT => {
                Err(format!("too_much: one event may cost {MOST_OF_AN_EVENT} minor units at most"))
            }
            _ => Ok(()),
        }
    }

    fn record(&self, subject: &UsageSubject, event: UsageEvent) -> NewRecord {
        debug_assert_eq!((subject.of.org_id, subject.of.project_id), (self.org, self.project));
        NewRecord {
            id: Uuid::now_v7(),
            of: subject.of.clone(),
            usage_source: UsageSource::AppRuntime,
            usage_unit: event.data.usage_unit,
            quantity: event.data.quantity,
            occurred_at: event.time,
            window: Window::of(event.time, self.window_seconds),
            correlation_id: self.correlation_id.clone(),
            reference_id: event.data.reference_id,
            metadata: event.data.metadata.unwrap_or_else(|| json!({})),
            source: event.source,
            event_id: event.id,
        }
    }
}

/// What the types cannot say.
fn problem(event: &UsageEvent) -> Option<String> {
    let UsageEvent { kind, source, id, data, .. } = event;
    let within = |text: &str, most: usize| (1..=most).contains(&text.chars().count());
    if kind != "app.usage" {
        return Some("type must be app.usage".to_owned());
    }
    if !within(source, 255) {
        return Some("source must have 1 to 255 characters".to_owned());
    }
    if source == meters::PLATFORM || source.starts_with(&format!("{}/", meters::PLATFORM)) {
        return Some(format!("source must not be under {}", meters::PLATFORM));
    }
    if !within(id, 128) {
        return Some("id must have 1 to 128 characters".to_owned());
    }
    if !(1..=metering::MOST).contains(&data.quantity) {
        return Some(format!("data.quantity must be a whole number from 1 to {}", metering::MOST));
    }
    if data.reference_id.as_ref().is_some_and(|text| text.chars().count() > 255) {
        return Some("data.reference_id must have at most 255 characters".to_owned());
    }
    match &data.metadata {
        Some(metadata) if !metadata.is_object() => Some("data.metadata must be an object".to_owned()),
        Some(metadata) if metadata.to_string().len() > MOST_METADATA => {
            Some(format!("data.metadata must have at most {MOST_METADATA} bytes"))
        }
        _ => None,
    }
}

/// An app tells of what its versions say they count. What the platform counts itself it takes from nobody.
fn unit(subject: &UsageSubject, unit: &str) -> Result<(), String> {
    let Some(serving) = subject.metering.first() else {
        return Err("unknown_unit: the version counts nothing of its own".to_owned());
    };
    let counted = subject.metering.iter().find(|metering| metering.unit == unit);
    let kind = counted.unwrap_or(serving).kind;
    if matches!(kind, MeteringKind::SessionSeconds | MeteringKind::GpuSeconds) {
        return Err(format!("counted_by_platform: {}", kind.as_str()));
    }
    match counted {
        Some(_) => Ok(()),
        None => Err(format!("unknown_unit: the version counts {}", serving.unit)),
    }
}

/// The one character that the database cannot keep.
fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
