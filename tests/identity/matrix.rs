//! The matrix: every route of the API document, asked by everybody there is. What each cell must answer follows from
//! the permission table alone.

use axum::http::Method;
use chrono::TimeDelta;
use domain::role::{OrganizationRole, PlatformRole, ProjectRole};
use domain::{Permission, PermissionSet};
use serde_json::{Value, json};
use uuid::Uuid;

use super::forged;
use crate::console::{browser::Browser, desk};
use crate::http::{Http, organization, project};
use crate::support::node::Node;
use crate::support::realm::{DEMO, EXAMPLE, PLATFORM, Realm};
use crate::support::story::Story;

/// A route as the document tells it.
struct Route {
    method: Method,
    /// With every parameter filled in.
    path: String,
    place: Place,
    access: String,
    humans_only: bool,
}

impl Route {
    /// A node asks about itself where it can; nobody waits for what will not come.
    fn asked_by(&self, who: &Somebody) -> String {
        let own = who.node.filter(|_| self.access == "node").unwrap_or(NOTHING);
        let path = self.path.replace(&NOTHING.to_string(), &own.to_string());
        if path.ends_with("/tasks/wait") { format!("{path}?wait=1ms") } else { path }
    }
}

/// The id of nothing.
const NOTHING: Uuid = Uuid::from_u128(0x0193_7a00_0000_7000_8000_0000_0000_dead);

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Project,
    Organization,
    Platform,
    Nowhere,
}

/// Somebody who asks, and what they hold where.
struct Somebody {
    name: &'static str,
    token: String,
    /// What a browser sends instead of a token.
    headers: Vec<(&'static str, String)>,
    holds: Holds,
    node: Option<Uuid>,
}

impl Somebody {
    fn bearing(name: &'static str, token: String, holds: Holds) -> Somebody {
        Somebody { name, token, headers: Vec::new(), holds, node: None }
    }
}

enum Holds {
    /// The token itself is refused with this code.
    Nothing(&'static str),
    Keys {
        project: PermissionSet,
        organization: PermissionSet,
        platform: PermissionSet,
        /// In places that no path of the matrix names.
        elsewhere: PermissionSet,
        machine: bool,
    },
    /// The same by a cookie alone, which changes nothing.
    ReadOnly(Box<Holds>),
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_everybody_as_the_permission_table_says() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let http = http.with_console(desk::console(&http.realm, false).await);
    let people = everybody(&http).await;
    let routes = routes();
    let (mut cells, mut leaks) = (0, Vec::new());
    for route in &routes {
        for who in &people {
            let headers: Vec<(&str, &str)> =
                who.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let body = (route.method != Method::GET).then(|| json!({ "no_such_field": 1 }));
            let caller = http.bearing(&who.token);
            let answer = caller.send(route.method.clone(), &route.asked_by(who), &headers, body).await;
            let code = answer.body["code"].as_str().unwrap_or_default().to_owned();
            let told = (answer.status.as_u16(), code.as_str());
            cells += 1;
            let expected = expected(route, who);
            let right = match expected {
                Some(expected) => told == expected,
                None => admitted(told),
            };
            if !right {
                leaks.push(format!(
                    "{} {} as {}: {told:?} instead of {expected:?}",
                    route.method, route.path, who.name
                ));
            }
        }
    }
    println!("{cells} cells, {} leaks", leaks.len());
    assert!(leaks.is_empty(), "{} of {cells} cells leak:\n{}", leaks.len(), leaks.join("\n"));
    assert!(cells >= 50 * people.len(), "the document has lost its routes");
    story.end().await;
}

/// `None` means that the gate must let them through, whatever the handler says then.
fn expected(route: &Route, who: &Somebody) -> Option<(u16, &'static str)> {
    if route.access == "public" {
        return None;
    }
    let holds = match &who.holds {
        Holds::ReadOnly(_) if route.method != Method::GET => return Some((401, "token_invalid")),
        Holds::ReadOnly(holds) => holds,
        holds => holds,
    };
    let (project, organization, platform, elsewhere, machine) = match holds {
        Holds::ReadOnly(_) => unreachable!("a cookie is a cookie"),
        Holds::Nothing(code) => return Some((401, code)),
        Holds::Keys { project, organization, platform, elsewhere, machine } => {
            (*project, *organization, *platform, *elsewhere, *machine)
        }
    };
    if route.access == "signed_in" {
        return None;
    }
    // A node speaks for itself, and nobody else does.
    if route.access == "node" {
        return who.node.is_none().then_some((403, "insufficient_permissions"));
    }
    // Nor is anybody here an instance.
    if route.access == "instance" {
        let hidden = project.is_empty();
        return Some(if hidden { (404, "project_not_found") } else { (403, "insufficient_permissions") });
    }
    let key: Permission = route.access.parse().expect("a permission key");
    let anywhere = project.and(organization).and(platform).and(elsewhere);
    let (held, invisible) = match route.place {
        Place::Project => (project, (404, "project_not_found")),
        Place::Organization => (organization, (404, "organization_not_found")),
        Place::Platform => (platform, (403, "admin_required")),
        Place::Nowhere => (anywhere, (403, "insufficient_permissions")),
    };
    if held.is_empty() {
        return Some(invisible);
    }
    let refused = !held.contains(key) || (route.humans_only && machine);
    refused.then_some((403, "insufficient_permissions"))
}

/// Past the gate nothing may fail, and nothing may be refused for who asks.
fn admitted((status, code): (u16, &str)) -> bool {
    let refused_by_gate =
        ["project_not_found", "organization_not_found", "admin_required", "insufficient_permissions"];
    // Other protocols have no codes.
    status < 500
        && !refused_by_gate.contains(&code)
        && (status != 401 || ["token_invalid", ""].contains(&code))
}

fn routes() -> Vec<Route> {
    let document = serde_json::to_value(api::document()).unwrap();
    let mut routes = Vec::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let access =
                operation["x-permission"].as_str().expect("every route names what it asks").to_owned();
            let secured = operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty());
            assert_eq!(secured, access != "public", "{method} {template}");
            let method = method.to_uppercase().parse().unwrap();
            let humans_only = operation["x-humans-only"] == true;
            routes.push(Route {
                method,
                path: filled(template),
                place: place(template),
                access,
                humans_only,
            });
        }
    }
    routes
}

fn place(template: &str) -> Place {
    match template {
        t if t.contains("{project_id}") => Place::Project,
        t if t.contains("{org_id}") => Place::Organization,
        t if t.starts_with("/api/v1/admin/") => Place::Platform,
        _ => Place::Nowhere,
    }
}

/// Ids that exist for the places, and ids of nothing for the rest.
fn filled(template: &str) -> String {
    let mut path = template
        .replace("{project_id}", &EXAMPLE.to_string())
        .replace("{org_id}", &DEMO.to_string())
        .replace("/admin/organizations/{id}", &format!("/admin/organizations/{DEMO}"))
        .replace("/admin/projects/{id}", &format!("/admin/projects/{EXAMPLE}"));
    for (name, value) in [
        ("{id}", NOTHING.to_string()),
        ("{task_id}", Uuid::now_v7().to_string()),
        ("{name}", "nothing".to_owned()),
        ("{token}", "nothing".to_owned()),
        ("{slug}", "nothing".to_owned()),
        ("{correlation_id}", "nothing".to_owned()),
        ("{version}", "0.0.0".to_owned()),
        ("{scope}", "global".to_owned()),
        ("{scope_id}", "global".to_owned()),
        ("{key}", "canary.min_samples".to_owned()),
    ] {
        path = path.replace(name, &value);
    }
    assert!(!path.contains('{'), "the matrix does not know how to fill {template}");
    path
}

async fn everybody(http: &Http) -> Vec<Somebody> {
    let mut people = impostors(&http.realm);
    let none = PermissionSet::EMPTY;
    let known = |name: &'static str, project, organization, platform| {
        let holds = Holds::Keys { project, organization, platform, elsewhere: none, machine: false };
        Somebody::bearing(name, http.realm.token(name), holds)
    };
    let (superadmin, ops) = (PlatformRole::PlatformSuperadmin.keys(), PlatformRole::PlatformOps.keys());
    people.push(known("admin", superadmin, superadmin, superadmin));
    people.push(known("ops", ops, ops, ops));
    for (name, role) in [
        ("project-admin", ProjectRole::Admin),
        ("operator", ProjectRole::Operator),
        ("publisher", ProjectRole::Publisher),
        ("viewer", ProjectRole::Viewer),
    ] {
        people.push(known(name, role.keys(), none, none));
    }
    for (name, role) in [
        ("owner", OrganizationRole::Owner),
        ("org-admin", OrganizationRole::Admin),
        ("org-viewer", OrganizationRole::Viewer),
    ] {
        people.push(known(name, role.keys(), role.keys(), none));
    }
    people.push(known("member", none, OrganizationRole::Member.keys(), none));
    people.push(known("newcomer", none, none, none));
    for name in ["neighbour", "stranger"] {
        let mut outsider = known(name, none, none, none);
        if let Holds::Keys { elsewhere, .. } = &mut outsider.holds {
            *elsewhere = ProjectRole::Admin.keys();
        }
        people.push(outsider);
    }
    people.extend(machines(http).await);
    people.push(custom(http).await);
    people.extend(browsers(http).await);
    let node = Node::enrol(&http.acting("admin"), "gpu-1").await;
    let holds =
        Holds::Keys { project: none, organization: none, platform: none, elsewhere: none, machine: true };
    people.push(Somebody {
        node: Some(node.id),
        ..Somebody::bearing("node", node.http.token().to_owned(), holds)
    });
    people
}

/// Somebody with a role that their organization made, of keys that no built-in role combines.
async fn custom(http: &Http) -> Somebody {
    let keys = [Permission::AuditRead, Permission::WebhooksManage, Permission::AppsEntitlementManage];
    let owner = http.acting("owner");
    owner.post(&organization("/roles"), json!({ "name": "auditor", "permissions": keys })).await.with(201);
    let token = http.realm.token("in a custom role");
    http.bearing(&token).get("/api/v1/me").await.with(200);
    let member = json!({ "username": "in a custom role", "role": "auditor" });
    owner.post(&project("/members"), member).await.with(201);
    let none = PermissionSet::EMPTY;
    let project = keys.into_iter().collect();
    let holds = Holds::Keys { project, organization: none, platform: none, elsewhere: none, machine: false };
    Somebody::bearing("in a custom role", token, holds)
}

/// A person who signed in to the console, with the token for changes and without.
async fn browsers(http: &Http) -> [Somebody; 2] {
    let mut browser = Browser::at(&http.bearing(""));
    browser.sign_in("operator").await;
    let csrf = browser.csrf().await;
    let cookies: Vec<String> =
        browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let cookie = ("cookie", cookies.join("; "));
    let none = PermissionSet::EMPTY;
    let holds = || Holds::Keys {
        project: ProjectRole::Operator.keys(),
        organization: none,
        platform: none,
        elsewhere: none,
        machine: false,
    };
    let by_page = Somebody::bearing("operator in a browser", String::new(), holds());
    let by_others = Somebody::bearing("another site", String::new(), Holds::ReadOnly(Box::new(holds())));
    [
        Somebody { headers: vec![cookie.clone(), ("x-csrf-token", csrf)], ..by_page },
        Somebody { headers: vec![cookie], ..by_others },
    ]
}

/// A service account for each set of keys: none of those a route asks for, exactly one of them, and all.
async fn machines(http: &Http) -> Vec<Somebody> {
    let admin = http.acting("project-admin");
    let mut machines = Vec::new();
    for (name, keys) in [
        ("machine that may only read the catalog", vec![Permission::AppsCatalogRead]),
        ("machine that reads workflows", vec![Permission::WorkflowsRead]),
        ("machine that operates workflows", vec![Permission::WorkflowsOperate]),
        ("machine that reads the audit log", vec![Permission::AuditRead]),
        ("machine with every key of the project", ProjectRole::Admin.keys().iter().collect()),
    ] {
        let body = json!({ "name": name, "permissions": keys });
        let made = admin.post(&project("/service-accounts"), body).await.with(201);
        let token = token_of(http, &made).await;
        let holds = Holds::Keys {
            project: keys.into_iter().collect(),
            organization: PermissionSet::EMPTY,
            platform: PermissionSet::EMPTY,
            elsewhere: PermissionSet::EMPTY,
            machine: true,
        };
        machines.push(Somebody::bearing(name, token, holds));
    }
    machines
}

async fn token_of(http: &Http, made: &Value) -> String {
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    let answer = http.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(200);
    answer["access_token"].as_str().unwrap().to_owned()
}

/// Everybody whose token must not be believed, although it names the superadmin.
fn impostors(realm: &Realm) -> Vec<Somebody> {
    let claims = realm.claims("admin");
    let with = |changes: &[(&str, Value)]| {
        let mut claims = claims.clone();
        for (name, value) in changes {
            claims[*name] = value.clone();
        }
        claims
    };
    let expired = with(&[("exp", json!((realm.now() - TimeDelta::minutes(5)).timestamp()))]);
    let elsewhere = with(&[("aud", json!("another-platform"))]);
    let unknown_issuer = with(&[("iss", json!("https://nobody.test"))]);
    let as_ours = with(&[("iss", json!(PLATFORM)), ("sub", json!(Uuid::now_v7()))]);
    let stranger = clients::signing::SigningKey::generate().unwrap();
    let tokens = [
        ("nobody", (String::new(), "token_missing")),
        ("garbage", ("garbage".to_owned(), "token_invalid")),
        ("expired", (realm.sign(&expired), "token_expired")),
        ("meant for others", (realm.sign(&elsewhere), "token_scope_invalid")),
        ("of an unknown issuer", (realm.sign(&unknown_issuer), "token_invalid")),
        ("of the issuer, posing as the platform", (realm.sign(&as_ours), "token_invalid")),
        ("signed by a stranger", (stranger.sign(&claims).unwrap(), "token_invalid")),
        ("unsigned", (forged::unsigned(&claims), "token_invalid")),
        ("signed with the public key as a password", (forged::confused(realm, &claims), "token_invalid")),
        ("tampered with", (forged::tampered(&realm.sign(&claims)), "token_invalid")),
    ];
    tokens
        .into_iter()
        .map(|(name, (token, code))| Somebody::bearing(name, token, Holds::Nothing(code)))
        .collect()
}
