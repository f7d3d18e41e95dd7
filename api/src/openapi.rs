//! The API document (`OpenAPI` 3.1), written from the route table: parameters, bodies, answers and every error code
//! of every route, with the permission key as `x-permission`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use api_types::{ErrorEnvelope, Problem};
use axum::Json;
use axum::http::Method;
use domain::ErrorCode;
use serde_json::Value;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathsBuilder,
};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ComponentsBuilder, KnownFormat, Ref};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, PathItem, Required};
use utoipa::{PartialSchema, ToSchema};

use crate::endpoint::{NamedSchema, text, text_as};
use crate::router::{PROJECT, Route, routes};

/// Any route may answer these.
const EVERYWHERE: [ErrorCode; 3] =
    [ErrorCode::InvalidRequest, ErrorCode::InternalError, ErrorCode::ServiceUnavailable];

pub(crate) async fn serve() -> Json<&'static Value> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Json(DOCUMENT.get_or_init(|| serde_json::to_value(document()).unwrap_or_default()))
}

const ABOUT: &str = "Every error has the shape of `ErrorEnvelope`; clients that accept `application/problem+json` \
    get `Problem` instead.";

/// What `/api/v1/openapi.json` serves.
pub fn document() -> OpenApi {
    let mut schemas: BTreeMap<String, _> = BTreeMap::new();
    let mut paths = PathsBuilder::new();
    for route in routes() {
        schemas.extend(route.endpoint.schemas.iter().cloned());
        paths = paths.path(route.path.clone(), PathItem::new(http_method(&route.method), operation(route)));
    }
    schemas.extend(error_schemas());
    let info = InfoBuilder::new().title("GPUaaS App Platform").version("v1").description(Some(ABOUT));
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(ComponentsBuilder::new().schemas_from_iter(schemas).build()))
        .build()
}

fn error_schemas() -> Vec<NamedSchema> {
    let mut schemas = vec![
        ("ErrorEnvelope".to_owned(), ErrorEnvelope::schema()),
        ("Problem".to_owned(), Problem::schema()),
    ];
    ErrorEnvelope::schemas(&mut schemas);
    schemas
}

fn http_method(method: &Method) -> HttpMethod {
    if *method == Method::GET { HttpMethod::Get } else { HttpMethod::Post }
}

fn operation(route: Route) -> Operation {
    let side = if route.path.starts_with(PROJECT) { "project" } else { "admin" };
    let mut operation = OperationBuilder::new()
        .operation_id(Some(format!("{side}_{}", route.endpoint.name)))
        .summary(Some(route.endpoint.summary))
        .tag(tag(&route.path))
        .extensions(Some(ExtensionsBuilder::new().add("x-permission", route.permission.as_str()).build()));
    for name in path_params(&route.path) {
        operation = operation.parameter(path_param(name));
    }
    let refusals = refusals(&route);
    operation = operation.parameters(Some(route.endpoint.params)).request_body(route.endpoint.body);
    for (status, answer) in route.endpoint.answers {
        operation = operation.response(status.to_string(), answer);
    }
    for (status, codes) in refusals {
        operation = operation.response(status.to_string(), refusal(&codes));
    }
    operation.build()
}

/// The first fixed word after the prefix: `workflows`, `schedules`, …
fn tag(path: &str) -> &str {
    let rest = path.trim_start_matches(PROJECT).trim_start_matches(crate::router::ADMIN);
    rest.trim_start_matches('/').split('/').next().unwrap_or_default()
}

fn path_params(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_param(name: &str) -> ParameterBuilder {
    let schema = if name.ends_with("id") { text_as(KnownFormat::Uuid) } else { text() };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
}

fn refusals(route: &Route) -> BTreeMap<u16, BTreeSet<ErrorCode>> {
    let of_project = route.path.starts_with(PROJECT).then_some(ErrorCode::ProjectNotFound);
    let mut by_status: BTreeMap<u16, BTreeSet<ErrorCode>> = BTreeMap::new();
    for code in EVERYWHERE.into_iter().chain(of_project).chain(route.endpoint.refusals.iter().copied()) {
        by_status.entry(code.status()).or_default().insert(code);
    }
    by_status
}

fn refusal(codes: &BTreeSet<ErrorCode>) -> Response {
    let lines: Vec<String> = codes.iter().map(|code| format!("`{code}`: {}", code.explanation())).collect();
    let content = |name: &str| ContentBuilder::new().schema(Some(Ref::from_schema_name(name))).build();
    ResponseBuilder::new()
        .description(lines.join("\n\n"))
        .content("application/json", content("ErrorEnvelope"))
        .content("application/problem+json", content("Problem"))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "whether to rewrite the snapshot is asked of the environment"
    )]
    fn the_stored_document_is_the_served_one() {
        // By way of a value, so that the keys are in order and differences are small.
        let value = serde_json::to_value(document()).unwrap();
        let now = format!("{}\n", serde_json::to_string_pretty(&value).unwrap());
        if std::env::var("UPDATE_SNAPSHOTS").is_ok() {
            std::fs::write(STORED, &now).unwrap();
        }
        let stored = std::fs::read_to_string(STORED).unwrap_or_default();
        assert!(stored == now, "docs/openapi.json is stale: run the tests with UPDATE_SNAPSHOTS=1");
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let document = serde_json::to_value(document()).unwrap();
        let known = document["components"]["schemas"].as_object().unwrap();
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(known.contains_key(name), "{name} is referred to and missing");
        }
    }

    #[test]
    fn operation_ids_are_unique() {
        let document = serde_json::to_value(document()).unwrap();
        let mut seen = BTreeSet::new();
        for item in document["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                assert!(seen.insert(operation["operationId"].to_string()), "{}", operation["operationId"]);
            }
        }
    }
}
