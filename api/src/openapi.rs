//! The API document (`OpenAPI` 3.1), written from the route table: parameters, bodies, answers and every error code
//! of every route, with what it asks of its caller as `x-permission`.

pub(crate) mod headers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use api_types::{ErrorEnvelope, Problem};
use axum::http::Method;
use domain::{CorrelationId, ErrorCode};
use serde_json::Value;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathsBuilder,
};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{Components, ComponentsBuilder, KnownFormat, Ref};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder, PathItem, RefOr, Required, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::access::Access;
use crate::endpoint::{NamedSchema, text, text_as, text_like};
use crate::gate::Place;
use crate::json::Json;
use crate::router::{ADMIN, ORGANIZATION, PROJECT, ROOT, Route, routes};

/// Any route may answer these.
const EVERYWHERE: [ErrorCode; 4] = [
    ErrorCode::InvalidRequest,
    ErrorCode::RateLimited,
    ErrorCode::InternalError,
    ErrorCode::ServiceUnavailable,
];

/// Any route behind a gate.
const GATED: [ErrorCode; 5] = [
    ErrorCode::TokenMissing,
    ErrorCode::TokenInvalid,
    ErrorCode::TokenExpired,
    ErrorCode::TokenScopeInvalid,
    ErrorCode::UpstreamError,
];

/// Any route that changes something.
const MUTATIONS: [ErrorCode; 2] = [ErrorCode::IdempotencyInProgress, ErrorCode::IdempotencyKeyReused];

const BEARER: &str = "bearer";

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
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components(schemas))).build()
}

fn components(schemas: BTreeMap<String, RefOr<Schema>>) -> Components {
    let mut components =
        ComponentsBuilder::new().schemas_from_iter(schemas).security_scheme(BEARER, bearer());
    for (name, header) in headers::described() {
        components = components.header(name, header);
    }
    components.build()
}

fn bearer() -> SecurityScheme {
    let about = "A token of an issuer the platform trusts, or one of the platform's own for machines.";
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT");
    SecurityScheme::Http(scheme.description(Some(about)).build())
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
    match *method {
        Method::POST => HttpMethod::Post,
        Method::PUT => HttpMethod::Put,
        Method::PATCH => HttpMethod::Patch,
        Method::DELETE => HttpMethod::Delete,
        Method::HEAD => HttpMethod::Head,
        _ => HttpMethod::Get,
    }
}

fn operation(route: Route) -> Operation {
    let mut extensions = ExtensionsBuilder::new().add("x-permission", route.access.as_str());
    if let Access::Person(_) = route.access {
        extensions = extensions.add("x-humans-only", true);
    }
    if route.endpoint.said_again {
        extensions = extensions.add("x-said-again", true);
    }
    if !route.endpoint.changes {
        extensions = extensions.add("x-changes-nothing", true);
    }
    let mut operation = OperationBuilder::new()
        .operation_id(Some(operation_id(&route)))
        .summary(Some(route.endpoint.summary))
        .tag(tag(&route.path))
        .extensions(Some(extensions.build()))
        .securities(Some(securities(route.access)));
    for name in path_params(&route.path) {
        operation = operation.parameter(path_param(name));
    }
    if route.is_mutation() {
        operation = operation.parameter(idempotency_key());
    }
    let mut answers: Vec<(u16, Response)> = route.endpoint.answers.clone();
    answers.extend(refusals(&route).into_iter().map(|(status, codes)| (status, refusal(&codes))));
    for (status, answer) in &mut answers {
        headers::complete(answer, *status, &route);
    }
    // A list of the whole platform may be narrowed to a project; where the path names one, it is.
    let in_project = route.place == Place::Project;
    let params =
        route.endpoint.params.into_iter().filter(|param| !(in_project && param.name == "project_id"));
    operation = operation.parameters(Some(params.collect::<Vec<_>>())).request_body(route.endpoint.body);
    for (status, answer) in answers {
        operation = operation.response(status.to_string(), answer);
    }
    operation.build()
}

/// The same endpoint may serve several places.
fn operation_id(route: &Route) -> String {
    let name = route.endpoint.name;
    match route.place {
        Place::Project => format!("project_{name}"),
        Place::Organization => format!("organization_{name}"),
        Place::Platform => format!("admin_{name}"),
        Place::Nowhere => name.to_owned(),
    }
}

fn securities(access: Access) -> Vec<SecurityRequirement> {
    if access == Access::Public {
        return Vec::new();
    }
    vec![SecurityRequirement::new(BEARER, Vec::<String>::new())]
}

fn idempotency_key() -> ParameterBuilder {
    let about = "Names this change: sent again with the same body, the first answer comes again and nothing happens twice.";
    ParameterBuilder::new()
        .name("X-Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(about))
        .schema(Some(text_like("^[!-~]{1,128}$")))
}

/// The first fixed word after the prefix: `workflows`, `schedules`, …
fn tag(path: &str) -> &str {
    let prefix = [PROJECT, ORGANIZATION, ADMIN, ROOT].into_iter().find(|prefix| path.starts_with(prefix));
    let rest = path.trim_start_matches(prefix.unwrap_or_default());
    rest.trim_start_matches('/').split('/').next().unwrap_or_default()
}

fn path_params(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_param(name: &str) -> ParameterBuilder {
    let schema = match name {
        "correlation_id" => text_like(CorrelationId::PATTERN),
        name if name.ends_with("id") => text_as(KnownFormat::Uuid),
        _ => text(),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(schema))
}

/// What a route may answer besides success: what it says itself, and what its place and its gate add.
fn refusals(route: &Route) -> BTreeMap<u16, BTreeSet<ErrorCode>> {
    if route.endpoint.own_errors {
        // It comes from before the door, where nobody speaks their protocol yet.
        return BTreeMap::from([(429, BTreeSet::from([ErrorCode::RateLimited]))]);
    }
    let mut codes = EVERYWHERE.to_vec();
    if route.access != Access::Public {
        codes.extend(GATED);
    }
    if !matches!(route.access, Access::Public | Access::SignedIn) {
        codes.push(ErrorCode::InsufficientPermissions);
    }
    if route.is_mutation() {
        codes.extend(MUTATIONS);
    }
    codes.extend(match route.place {
        Place::Project => Some(ErrorCode::ProjectNotFound),
        Place::Organization => Some(ErrorCode::OrganizationNotFound),
        Place::Platform => Some(ErrorCode::AdminRequired),
        Place::Nowhere => None,
    });
    codes.extend(&route.endpoint.refusals);
    let mut by_status: BTreeMap<u16, BTreeSet<ErrorCode>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().insert(code);
    }
    by_status
}

fn refusal(codes: &BTreeSet<ErrorCode>) -> Response {
    let lines: Vec<String> = codes.iter().map(|code| format!("`{code}`: {}", code.explanation())).collect();
    let content = |name: &str| ContentBuilder::new().schema(Some(Ref::from_schema_name(name)));
    let examples = codes
        .iter()
        .map(|code| (code.as_str(), ExampleBuilder::new().value(Some(headers::example(*code))).build()));
    ResponseBuilder::new()
        .description(lines.join("\n\n"))
        .content("application/json", content("ErrorEnvelope").examples_from_iter(examples).build())
        .content("application/problem+json", content("Problem").build())
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
    fn every_body_has_an_example() {
        let document = serde_json::to_value(document()).unwrap();
        let schemas = &document["components"]["schemas"];
        for route in routes() {
            let operation = &document["paths"][&route.path][route.method.as_str().to_lowercase()];
            for content in
                operation["requestBody"]["content"].as_object().into_iter().flat_map(|all| all.values())
            {
                let schema = &content["schema"];
                // Bytes are whatever they are.
                let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) else {
                    assert_eq!(schema["format"], "binary", "the body of {} is not described", route.path);
                    continue;
                };
                // A list shows its example among `examples`.
                let shown = schemas[name]["example"].is_object() || schemas[name]["examples"][0].is_array();
                assert!(shown, "{name} of {} has no example", route.path);
            }
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
