//! What the platform tells the world: the closed list of event types, and an event in the form of `CloudEvents` 1.0.
//!
//! An event is written with the change it tells of. Its data is the public form of a resource: what a field's name
//! calls secret is hidden here, whoever wrote it.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::redact::redacted;

/// `NodesLost` stays last: it sizes the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    InstanceRequested,
    InstanceDeploying,
    InstanceRunning,
    InstanceUpgradeRequested,
    InstanceUpgraded,
    InstanceRollbackRequested,
    InstanceRolledBack,
    InstanceDecommissionRequested,
    InstanceDecommissioned,
    InstanceFailed,
    InstanceReported,
    ArtifactPublished,
    ArtifactVerified,
    ArtifactVerificationFailed,
    ArtifactPromoted,
    ArtifactDeprecated,
    ArtifactRetired,
    ArtifactRevoked,
    VersionRegistered,
    VersionStaged,
    VersionCanaryStarted,
    VersionCanaryHalted,
    VersionActivated,
    VersionDeprecated,
    VersionRetired,
    EntitlementChanged,
    LowBalance,
    BudgetExceeded,
    LedgerPosted,
    RunStuck,
    NodesLost,
}

struct Row {
    kind: EventType,
    name: &'static str,
    explanation: &'static str,
}

const fn row(kind: EventType, name: &'static str, explanation: &'static str) -> Row {
    Row { kind, name, explanation }
}

#[rustfmt::skip]
const TABLE: [Row; EventType::NodesLost as usize + 1] = {
    use EventType::*;
    [
        row(InstanceRequested, "apps.instance.requested", "Somebody asked for an instance."),
        row(InstanceDeploying, "apps.instance.deploying", "An instance is being placed and started."),
        row(InstanceRunning, "apps.instance.running", "An instance is healthy and serves."),
        row(InstanceUpgradeRequested, "apps.instance.upgrade_requested", "Somebody asked for another version."),
        row(InstanceUpgraded, "apps.instance.upgraded", "An instance serves its new version."),
        row(InstanceRollbackRequested, "apps.instance.rollback_requested", "Somebody asked for an earlier version."),
        row(InstanceRolledBack, "apps.instance.rolled_back", "An instance serves an earlier version again."),
        row(InstanceDecommissionRequested, "apps.instance.decommission_requested", "Somebody asked for an instance's end."),
        row(InstanceDecommissioned, "apps.instance.decommissioned", "Nothing of an instance is left on its nodes."),
        row(InstanceFailed, "apps.instance.failed", "An operation of an instance failed; `data.operation` names it."),
        row(InstanceReported, "apps.instance.reported", "An instance told something of itself; `data.event_type` says what."),
        row(ArtifactPublished, "apps.artifact.published", "An artifact was registered by its digest."),
        row(ArtifactVerified, "apps.artifact.verified", "An artifact passed every check that policy requires."),
        row(ArtifactVerificationFailed, "apps.artifact.verification_failed", "An artifact did not pass a check."),
        row(ArtifactPromoted, "apps.artifact.promoted", "An artifact reached a channel."),
        row(ArtifactDeprecated, "apps.artifact.deprecated", "An artifact should not be used for anything new."),
        row(ArtifactRetired, "apps.artifact.retired", "An artifact is out of use."),
        row(ArtifactRevoked, "apps.artifact.revoked", "An artifact is no longer trusted."),
        row(VersionRegistered, "apps.version.registered", "A version of an app is in the catalog, as a draft."),
        row(VersionStaged, "apps.version.staged", "A version is frozen and ready to be rolled out."),
        row(VersionCanaryStarted, "apps.version.canary_started", "Some projects may deploy a version."),
        row(VersionCanaryHalted, "apps.version.canary_halted", "A canary went back to staged; `data.evidence` says why."),
        row(VersionActivated, "apps.version.activated", "Every entitled project may deploy a version."),
        row(VersionDeprecated, "apps.version.deprecated", "A version takes no new instances."),
        row(VersionRetired, "apps.version.retired", "Nothing uses a version and nothing can."),
        row(EntitlementChanged, "apps.entitlement.changed", "What a project may do with an app has changed."),
        row(LowBalance, "billing.low_balance", "A project's balance fell below its threshold."),
        row(BudgetExceeded, "billing.budget_exceeded", "A project spent more than its budget."),
        row(LedgerPosted, "billing.ledger_posted", "Lines were added to a project's ledger; `data.head_hash` seals them."),
        row(RunStuck, "workflows.run_stuck", "A run needs a person."),
        row(NodesLost, "nodes.lost", "A node has not been heard of for too long."),
    ]
};

impl EventType {
    pub fn all() -> impl Iterator<Item = EventType> {
        TABLE.iter().map(|row| row.kind)
    }

    pub const fn as_str(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// One sentence for whoever subscribes.
    pub const fn explanation(self) -> &'static str {
        TABLE[self as usize].explanation
    }
}

/// An event about to be written; its id, place in the order and time come with the writing. One that is read again has its
/// type as text, because a newer release may have written it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent<Kind = EventType> {
    pub kind: Kind,
    /// The nil id for what happens on the platform itself.
    pub project_id: Uuid,
    pub org_id: Option<Uuid>,
    /// The id of the resource it is about.
    pub subject: String,
    data: Value,
    pub correlation_id: String,
    pub traceparent: Option<String>,
}

/// What ties an event to everything else that the same request set off.
#[derive(Clone, Copy, Debug)]
pub struct Thread<'a> {
    pub correlation_id: &'a str,
    /// The span that it came from, as W3C names it.
    pub traceparent: Option<&'a str>,
}

impl<'a> From<&'a str> for Thread<'a> {
    fn from(correlation_id: &'a str) -> Thread<'a> {
        Thread { correlation_id, traceparent: None }
    }
}

impl<Kind> NewEvent<Kind> {
    /// An event of a project. What cannot be written as JSON is left out: an event must never fail its change.
    pub fn of_project<'a>(
        (org_id, project_id): (Uuid, Uuid),
        kind: Kind,
        subject: impl fmt::Display,
        data: &impl Serialize,
        thread: impl Into<Thread<'a>>,
    ) -> NewEvent<Kind> {
        let Thread { correlation_id, traceparent } = thread.into();
        NewEvent {
            kind,
            project_id,
            org_id: Some(org_id),
            subject: subject.to_string(),
            data: redacted(serde_json::to_value(data).unwrap_or_default()),
            correlation_id: correlation_id.to_owned(),
            traceparent: traceparent.map(str::to_owned),
        }
    }

    /// An event of the platform itself, which belongs to no project.
    pub fn of_platform(
        kind: Kind,
        subject: impl fmt::Display,
        data: &impl Serialize,
        correlation_id: &str,
    ) -> NewEvent<Kind> {
        let nobody = (Uuid::nil(), Uuid::nil());
        NewEvent { org_id: None, ..NewEvent::of_project(nobody, kind, subject, data, correlation_id) }
    }

    /// Without secrets.
    pub fn data(&self) -> &Value {
        &self.data
    }
}

/// An event as every transport sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CloudEvent {
    /// Always `1.0`.
    pub specversion: String,
    /// The same for every delivery of this event.
    pub id: Uuid,
    /// `/projects/{id}`, or `/platform`.
    pub source: String,
    /// As it was written: a release may pass on what only a newer one knows.
    #[serde(rename = "type")]
    #[schema(value_type = EventType)]
    pub kind: String,
    /// The id of the resource it is about.
    pub subject: String,
    pub time: DateTime<Utc>,
    /// Always `application/json`.
    pub datacontenttype: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orgid: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projectid: Option<Uuid>,
    pub correlationid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// Its place among the events of its project, without gaps; twenty digits, so that texts sort as numbers do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9]{20}$")]
    pub sequence: Option<String>,
    /// The resource's public form; never a secret.
    pub data: Value,
}

impl CloudEvent {
    pub fn new(id: Uuid, time: DateTime<Utc>, event: NewEvent<impl fmt::Display>) -> CloudEvent {
        let projectid = Some(event.project_id).filter(|project| !project.is_nil());
        CloudEvent {
            specversion: "1.0".to_owned(),
            id,
            source: projectid
                .map_or_else(|| "/platform".to_owned(), |project| format!("/projects/{project}")),
            kind: event.kind.to_string(),
            subject: event.subject,
            time,
            datacontenttype: "application/json".to_owned(),
            orgid: event.org_id,
            projectid,
            correlationid: event.correlation_id,
            traceparent: event.traceparent,
            sequence: None,
            data: event.data,
        }
    }

    /// With its place in the order, once it has one.
    #[must_use]
    pub fn numbered(mut self, seq: Option<i64>) -> CloudEvent {
        self.sequence = seq.map(|seq| format!("{seq:020}"));
        self
    }

    /// Its place in the order; 0 while it has none.
    pub fn seq(&self) -> i64 {
        self.sequence.as_deref().and_then(|digits| digits.parse().ok()).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an event type")]
pub struct UnknownEventType(String);

impl FromStr for EventType {
    type Err = UnknownEventType;
    fn from_str(name: &str) -> Result<EventType, UnknownEventType> {
        EventType::all().find(|kind| kind.as_str() == name).ok_or_else(|| UnknownEventType(name.to_owned()))
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for EventType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<EventType, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl PartialSchema for EventType {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The closed list of event types."))
            .enum_values(Some(EventType::all().map(EventType::as_str)))
            .into()
    }
}

impl ToSchema for EventType {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_type_finds_its_own_row_and_parses_back() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.kind as usize, place, "{} stands in another type's place", row.name);
            assert_eq!(row.name.parse(), Ok(row.kind));
            assert!(row.explanation.ends_with('.'), "{}", row.name);
        }
        assert!("apps.instance.exploded".parse::<EventType>().is_err());
    }

    #[test]
    fn an_event_reads_as_the_standard_says_and_keeps_no_secret() {
        let (org, project) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let data = json!({ "id": 7, "access_token": "hush" });
        let told = NewEvent::of_project((org, project), EventType::VersionStaged, "v7", &data, "c-1");
        let sent = CloudEvent::new(Uuid::from_u128(9), DateTime::UNIX_EPOCH, told).numbered(Some(42));
        assert_eq!(sent.seq(), 42);
        assert_eq!(
            serde_json::to_value(sent).unwrap(),
            json!({
                "specversion": "1.0", "id": Uuid::from_u128(9), "source": format!("/projects/{project}"),
                "type": "apps.version.staged", "subject": "v7", "time": "1970-01-01T00:00:00Z",
                "datacontenttype": "application/json", "orgid": org, "projectid": project, "correlationid": "c-1",
                "sequence": "00000000000000000042",
                "data": { "id": 7, "access_token": "[redacted]" },
            })
        );
    }

    #[test]
    fn what_happens_on_the_platform_belongs_to_no_project() {
        let told = NewEvent::of_platform(EventType::NodesLost, "n1", &json!({}), "c-1");
        let sent = serde_json::to_value(CloudEvent::new(Uuid::nil(), DateTime::UNIX_EPOCH, told)).unwrap();
        assert_eq!((&sent["source"], sent.get("projectid")), (&json!("/platform"), None));
    }
}
