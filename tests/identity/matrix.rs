//! The matrix: every route of the API document, asked by everybody there is. What each cell must answer follows from
//! the permission table alone.

use axum::http::Method;
use chrono::TimeDelta;
use domain::role::{OrganizationRole, PlatformRole, ProjectRole};
use domain::{Permission, PermissionSet};
use serde_json::{Value, json};
use uuid::Uuid;

use super::forged;
use crate::http::{Http, project};
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
    holds: Holds,
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
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_answers_everybody_as_the_permission_table_says() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let people = everybody(&http).await;
    let routes = routes();
    let (mut cells, mut leaks) = (0, Vec::new());
    for route in &routes {
        for who in &people {
            let headers: &[(&str, &str)] = &[];
            let body = (route.method != Method::GET).then(|| json!({ "no_such_field": 1 }));
            let caller = http.bearing(&who.token);
            let answer = caller.send(route.method.clone(), &route.path, headers, body).await;
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
    let (project, organization, platform, elsewhere, machine) = match &who.holds {
        Holds::Nothing(code) => return Some((401, code)),
        Holds::Keys { project, organization, platform, elsewhere, machine } => {
            (*project, *organization, *platform, *elsewhere, *machine)
        }
    };
    if route.access == "signed_in" {
        return None;
    }
    // Nobody here is a node.
    if route.access == "node" {
        return Some((403, "insufficient_permissions"));
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
    let mut path =
        template.replace("{project_id}", &EXAMPLE.to_string()).replace("{org_id}", &DEMO.to_string());
    for (name, value) in [
        ("{id}", Uuid::now_v7().to_string()),
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
    let known = |name: &'static str, project, organization, platform| Somebody {
        name,
        token: http.realm.token(name),
        holds: Holds::Keys { project, organization, platform, elsewhere: none, machine: false },
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
    people
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
        machines.push(Somebody { name, token, holds });
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
        .map(|(name, (token, code))| Somebody { name, token, holds: Holds::Nothing(code) })
        .collect()
}
