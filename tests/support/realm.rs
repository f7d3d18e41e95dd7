//! The people of a story: an issuer whose tokens the platform believes, and who is what where.
//!
//! Organization `demo` has the projects `example` and `next-door`, organization `other` has `far-away`. Everybody signs in
//! by a token of the issuer, through the same code as in production.

use std::sync::Arc;

use api::Keys;
use chrono::{DateTime, TimeDelta, Utc};
use clients::clock::ManualClock;
use clients::oidc::{Issuer, IssuerKeys, Verifier};
use clients::seal::Sealer;
use clients::signing::{SigningKey, SigningKeys};
use clients::tokens::Minter;
use domain::{OrganizationRole, PlatformRole, ProjectRole, Scope};
use serde_json::{Value, json};
use sqlx::{PgConnection, PgPool};
use store::memberships::RoleRef;
use store::{memberships, organizations, policies, projects, users};
use uuid::Uuid;

pub const DEMO: Uuid = Uuid::from_u128(0xA);
pub const OTHER: Uuid = Uuid::from_u128(0xB);
/// The project that `Story` starts its runs in.
pub const EXAMPLE: Uuid = Uuid::from_u128(1);
pub const NEXT_DOOR: Uuid = Uuid::from_u128(2);
pub const FAR_AWAY: Uuid = Uuid::from_u128(3);

pub const ISSUER: &str = "https://people.test";
pub const PLATFORM: &str = "https://gpuaas.test";
pub const AUDIENCE: &str = "gpuaas";

#[derive(Clone)]
pub struct Realm {
    pub issuer: SigningKey,
    pub clock: Arc<ManualClock>,
    pub keys: Keys,
    /// The line of the key that seals, for processes that must open the same.
    pub sealing: String,
}

impl Realm {
    pub fn new() -> Realm {
        let clock = Arc::new(ManualClock::at(Utc::now()));
        let issuer = SigningKey::generate().expect("a key");
        let trusted = Issuer {
            name: ISSUER.to_owned(),
            url: ISSUER.to_owned(),
            audiences: vec![AUDIENCE.to_owned()],
            keys: IssuerKeys::Given(SigningKeys::one(issuer.clone()).public()),
        };
        let verifier = Verifier::new(vec![trusted], true, clock.clone()).expect("a verifier");
        let own = SigningKeys::one(SigningKey::generate().expect("a key"));
        let minter = Minter::new(PLATFORM, AUDIENCE, own, clock.clone());
        let sealing = Sealer::generate_line("story").expose().clone();
        let sealer = Sealer::from_lines(&sealing).expect("a sealer");
        let keys = Keys { verifier: Arc::new(verifier), minter, clock: clock.clone(), sealer };
        Realm { issuer, clock, keys, sealing }
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.keys.clock.now()
    }

    /// Whom the issuer knows under this name, for an hour.
    pub fn token(&self, username: &str) -> String {
        self.sign(&self.claims(username))
    }

    pub fn claims(&self, username: &str) -> Value {
        let now = self.now();
        json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": username, "preferred_username": username,
            "iat": now.timestamp(), "exp": (now + TimeDelta::hours(1)).timestamp(),
        })
    }

    pub fn sign(&self, claims: &Value) -> String {
        self.issuer.sign(claims).expect("a token")
    }
}

/// Who is what. Nobody in a story is slowed down by the rate limit unless it is about that.
pub async fn settle(pool: &PgPool) {
    let mut tx = pool.begin().await.expect("a transaction");
    for (id, slug) in [(DEMO, "demo"), (OTHER, "other")] {
        organizations::ensure(&mut tx, id, slug, slug).await.expect("an organization");
    }
    for (id, org, slug) in
        [(EXAMPLE, DEMO, "example"), (NEXT_DOOR, DEMO, "next-door"), (FAR_AWAY, OTHER, "far-away")]
    {
        projects::ensure(&mut tx, id, org, slug, slug).await.expect("a project");
    }
    for (name, role) in [("admin", PlatformRole::PlatformSuperadmin), ("ops", PlatformRole::PlatformOps)] {
        let id = sign_in(&mut tx, name).await;
        users::set_platform_role(&mut tx, id, role).await.expect("a platform role");
    }
    for (name, project, role) in [
        ("project-admin", EXAMPLE, ProjectRole::Admin),
        ("operator", EXAMPLE, ProjectRole::Operator),
        ("publisher", EXAMPLE, ProjectRole::Publisher),
        ("viewer", EXAMPLE, ProjectRole::Viewer),
        ("neighbour", NEXT_DOOR, ProjectRole::Admin),
        ("stranger", FAR_AWAY, ProjectRole::Admin),
    ] {
        let id = sign_in(&mut tx, name).await;
        memberships::ensure_in_project(&mut tx, project, id, role).await.expect("a membership");
    }
    for (name, role) in [
        ("owner", OrganizationRole::Owner),
        ("org-admin", OrganizationRole::Admin),
        ("org-viewer", OrganizationRole::Viewer),
        ("member", OrganizationRole::Member),
    ] {
        let id = sign_in(&mut tx, name).await;
        let role = RoleRef::BuiltIn(role.as_str());
        memberships::insert(&mut tx, Scope::Organization { org: DEMO }, id, role)
            .await
            .expect("a membership");
    }
    unlimited(&mut tx).await;
    tx.commit().await.expect("a commit");
}

pub async fn sign_in(conn: &mut PgConnection, name: &str) -> Uuid {
    users::sign_in(conn, ISSUER, name, name).await.expect("a user").id
}

async fn unlimited(conn: &mut PgConnection) {
    let (layer, key) = (domain::PolicyLayer::Global, domain::PolicyKey::ApiRequestsPerMinute);
    policies::set(conn, layer, Uuid::nil(), key, &json!(1_000_000), Uuid::nil()).await.expect("a policy");
}
