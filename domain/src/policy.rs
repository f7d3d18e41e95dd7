//! Policy keys: what administrators may tune, each with a default, bounds and a rule for combining layers.
//!
//! The most specific layer wins (user, project, organization, global), except where a key can deny: a denial on any
//! layer holds on all those inside it.

mod bounds;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use self::bounds::Bounds;

/// `WorkflowMaxInFlightPerProject` stays last: it sizes the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PolicyKey {
    ServiceAccountTokenTtlSeconds,
    ApiRequestsPerMinute,
    BillingWindowSeconds,
    LowBalanceThresholdMinor,
    LateEventSeconds,
    SignatureRequired,
    ProvenanceRequired,
    SourceAllowlist,
    ChannelGates,
    ServiceAccountPromoteChannels,
    RetireGraceSeconds,
    ActiveChannels,
    CanaryMaxFailureRate,
    CanaryMinSamples,
    PlatformManagedEnabled,
    RelaunchMissing,
    AllowPrivateAddresses,
    WorkflowMaxInFlightPerProject,
}

/// Where a value is set, from the least to the most specific.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyLayer {
    Global,
    Org,
    Project,
    User,
}

/// How the values of several layers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Combine {
    MostSpecific,
    /// This value, on whatever layer, is a denial.
    Denies(bool),
}

struct Row {
    key: PolicyKey,
    name: &'static str,
    bounds: Bounds,
    combine: Combine,
}

const CHANNELS: &[&str] = &["dev", "test", "staging", "prod"];
const DAY: i64 = 86_400;

const fn row(key: PolicyKey, name: &'static str, bounds: Bounds) -> Row {
    Row { key, name, bounds, combine: Combine::MostSpecific }
}

const fn switch(key: PolicyKey, name: &'static str, denial: bool) -> Row {
    Row { key, name, bounds: Bounds::Switch, combine: Combine::Denies(denial) }
}

#[rustfmt::skip]
const TABLE: [Row; PolicyKey::WorkflowMaxInFlightPerProject as usize + 1] = {
    use PolicyKey::*;
    use Bounds::{Integer, Number, Table, Words};
    [
        row(ServiceAccountTokenTtlSeconds, "auth.service_account_token_ttl_seconds", Integer { least: 60, most: 3600 }),
        row(ApiRequestsPerMinute, "rate_limit.api_requests_per_minute", Integer { least: 1, most: 1_000_000 }),
        row(BillingWindowSeconds, "billing.window_seconds", Integer { least: 1, most: 3600 }),
        row(LowBalanceThresholdMinor, "billing.low_balance_threshold_minor", Integer { least: 0, most: 1_000_000_000 }),
        row(LateEventSeconds, "usage.late_event_seconds", Integer { least: 0, most: 90 * DAY }),
        switch(SignatureRequired, "artifact.signature_required", true),
        switch(ProvenanceRequired, "artifact.provenance_required", true),
        row(SourceAllowlist, "artifact.source_allowlist", Words { of: None }),
        row(ChannelGates, "artifact.channel_gates", Table { names: CHANNELS }),
        row(ServiceAccountPromoteChannels, "artifact.service_account_promote_channels", Words { of: Some(CHANNELS) }),
        row(RetireGraceSeconds, "artifact.retire_grace_seconds", Integer { least: 0, most: 365 * DAY }),
        row(ActiveChannels, "version.active_channels", Words { of: Some(CHANNELS) }),
        row(CanaryMaxFailureRate, "canary.max_failure_rate", Number { least: 0.0, most: 1.0 }),
        row(CanaryMinSamples, "canary.min_samples", Integer { least: 1, most: 100_000 }),
        switch(PlatformManagedEnabled, "apps.platform_managed_enabled", false),
        row(RelaunchMissing, "apps.relaunch_missing", Bounds::Switch),
        switch(AllowPrivateAddresses, "webhooks.allow_private_addresses", false),
        row(WorkflowMaxInFlightPerProject, "workflow.max_in_flight_per_project", Integer { least: 1, most: 100_000 }),
    ]
};

impl PolicyKey {
    pub fn all() -> impl Iterator<Item = PolicyKey> {
        TABLE.iter().map(|row| row.key)
    }

    pub const fn as_str(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// What holds where no layer says anything.
    pub fn default_value(self) -> Value {
        use PolicyKey::*;
        match self {
            ServiceAccountTokenTtlSeconds => json!(900),
            ApiRequestsPerMinute => json!(600),
            BillingWindowSeconds => json!(60),
            LowBalanceThresholdMinor => json!(500),
            LateEventSeconds => json!(DAY),
            SignatureRequired | ProvenanceRequired | PlatformManagedEnabled | AllowPrivateAddresses => {
                json!(false)
            }
            RelaunchMissing => json!(true),
            SourceAllowlist => json!([]),
            ChannelGates => json!({}),
            ServiceAccountPromoteChannels => json!(["dev", "test"]),
            RetireGraceSeconds => json!(7 * DAY),
            ActiveChannels => json!(["prod"]),
            CanaryMaxFailureRate => json!(0.1),
            CanaryMinSamples => json!(20),
            WorkflowMaxInFlightPerProject => json!(100),
        }
    }

    /// Why the key cannot have this value; `Ok` if it can.
    pub fn check(self, value: &Value) -> Result<(), String> {
        TABLE[self as usize].bounds.check(value)
    }

    /// The bounds in words, for people who must choose a value.
    pub fn bounds(self) -> String {
        TABLE[self as usize].bounds.to_string()
    }

    /// A value of this key as a whole number. What cannot be read as one counts as the default, never as zero.
    pub fn whole_number(self, value: &Value) -> i64 {
        value.as_i64().or_else(|| self.default_value().as_i64()).unwrap_or_default()
    }

    /// A value of this key as a number. What cannot be read as one counts as the default.
    pub fn number(self, value: &Value) -> f64 {
        value.as_f64().or_else(|| self.default_value().as_f64()).unwrap_or_default()
    }

    /// A value of this key as yes or no. What cannot be read was meant to say something, so it counts as the denial where the
    /// key has one, and else as the default.
    pub fn flag(self, value: &Value) -> bool {
        let unreadable = || match TABLE[self as usize].combine {
            Combine::Denies(word) => word,
            Combine::MostSpecific => self.default_value().as_bool().unwrap_or_default(),
        };
        value.as_bool().unwrap_or_else(unreadable)
    }

    /// The value that holds, and the layer it comes from; `None` is the default.
    pub fn resolve<'a>(self, set: impl IntoIterator<Item = (PolicyLayer, &'a Value)>) -> Resolved {
        let mut layers: Vec<(PolicyLayer, &Value)> = set.into_iter().collect();
        layers.sort_by_key(|(layer, _)| *layer);
        let denial = match TABLE[self as usize].combine {
            Combine::MostSpecific => None,
            Combine::Denies(word) => layers.iter().find(|(_, value)| **value == Value::Bool(word)),
        };
        match denial.or(layers.last()) {
            Some((layer, value)) => Resolved { value: (*value).clone(), layer: Some(*layer) },
            None => Resolved { value: self.default_value(), layer: None },
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub value: Value,
    pub layer: Option<PolicyLayer>,
}

impl PolicyLayer {
    pub const ALL: [PolicyLayer; 4] =
        [PolicyLayer::Global, PolicyLayer::Org, PolicyLayer::Project, PolicyLayer::User];

    pub const fn as_str(self) -> &'static str {
        match self {
            PolicyLayer::Global => "global",
            PolicyLayer::Org => "org",
            PolicyLayer::Project => "project",
            PolicyLayer::User => "user",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a policy key or layer")]
pub struct UnknownPolicy(String);

impl FromStr for PolicyKey {
    type Err = UnknownPolicy;
    fn from_str(name: &str) -> Result<PolicyKey, UnknownPolicy> {
        PolicyKey::all().find(|key| key.as_str() == name).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl FromStr for PolicyLayer {
    type Err = UnknownPolicy;
    fn from_str(name: &str) -> Result<PolicyLayer, UnknownPolicy> {
        let named = PolicyLayer::ALL.into_iter().find(|layer| layer.as_str() == name);
        named.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl fmt::Display for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for PolicyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PolicyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PolicyKey, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl PartialSchema for PolicyKey {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A policy key."))
            .enum_values(Some(PolicyKey::all().map(PolicyKey::as_str)))
            .into()
    }
}

impl ToSchema for PolicyKey {}

#[cfg(test)]
mod tests {
    use super::PolicyLayer::{Global, Org, Project, User};
    use super::*;

    #[test]
    fn every_key_finds_its_own_row_and_its_default_is_within_bounds() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.key as usize, place, "{} stands in another key's place", row.name);
            assert_eq!(row.name.parse(), Ok(row.key));
            assert_eq!(row.key.check(&row.key.default_value()), Ok(()), "{}", row.name);
        }
    }

    #[test]
    fn the_most_specific_layer_wins_whatever_the_order() {
        let (low, high, own) = (json!(10), json!(20), json!(30));
        let resolve = |set: Vec<_>| PolicyKey::ApiRequestsPerMinute.resolve(set);
        assert_eq!(resolve(vec![]), Resolved { value: json!(600), layer: None });
        let both = resolve(vec![(Project, &high), (Global, &low)]);
        assert_eq!(both, Resolved { value: json!(20), layer: Some(Project) });
        assert_eq!(resolve(vec![(User, &own), (Org, &low), (Project, &high)]).value, json!(30));
    }

    #[test]
    fn a_denial_holds_on_every_layer_inside() {
        let (yes, no) = (json!(true), json!(false));
        let signed = PolicyKey::SignatureRequired.resolve([(Global, &yes), (Project, &no)]);
        assert_eq!(signed, Resolved { value: json!(true), layer: Some(Global) });
        let private = PolicyKey::AllowPrivateAddresses.resolve([(Org, &no), (Project, &yes)]);
        assert_eq!(private, Resolved { value: json!(false), layer: Some(Org) });
        let allowed = PolicyKey::AllowPrivateAddresses.resolve([(Project, &yes)]);
        assert_eq!(allowed.value, json!(true), "a default is no denial");
    }

    #[test]
    fn what_cannot_be_read_loosens_nothing() {
        for unreadable in [json!("yes"), json!(null), json!([1])] {
            assert_eq!(PolicyKey::RetireGraceSeconds.whole_number(&unreadable), 7 * DAY);
            assert_eq!(PolicyKey::CanaryMinSamples.whole_number(&unreadable), 20);
            assert!((PolicyKey::CanaryMaxFailureRate.number(&unreadable) - 0.1).abs() < f64::EPSILON);
            assert!(PolicyKey::SignatureRequired.flag(&unreadable), "signatures are required");
            assert!(!PolicyKey::AllowPrivateAddresses.flag(&unreadable));
            assert!(PolicyKey::RelaunchMissing.flag(&unreadable), "no denial: its default");
        }
        assert!(!PolicyKey::SignatureRequired.flag(&json!(false)));
        assert_eq!(PolicyKey::RetireGraceSeconds.whole_number(&json!(0)), 0);
    }

    #[test]
    fn values_out_of_bounds_are_refused_with_the_bounds() {
        let ttl = PolicyKey::ServiceAccountTokenTtlSeconds;
        for bad in [json!(59), json!(3601), json!("900"), json!(900.5), json!(null)] {
            assert_eq!(ttl.check(&bad), Err("must be a whole number from 60 to 3600".to_owned()), "{bad}");
        }
        assert!(PolicyKey::CanaryMaxFailureRate.check(&json!(1.1)).is_err());
        assert!(PolicyKey::SignatureRequired.check(&json!("yes")).is_err());
        assert!(PolicyKey::ActiveChannels.check(&json!(["prod", "moon"])).is_err());
        assert!(PolicyKey::SourceAllowlist.check(&json!(["registry.example/team"])).is_ok());
        assert!(PolicyKey::ChannelGates.check(&json!({ "moon": {} })).is_err());
    }
}
