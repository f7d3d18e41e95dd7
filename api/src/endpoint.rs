//! A handler together with what the API document says of it.
//!
//! Resources return endpoints, the router mounts them, and the document is written from the same values: a route
//! cannot be served without being documented, nor the other way round.

use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use domain::ErrorCode;
use domain::manifest::Manifest;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, ObjectBuilder, Ref, SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{RefOr, Required, Schema};

use crate::manifest_body;
use crate::openapi::headers;
use crate::state::State;

pub(crate) type NamedSchema = (String, RefOr<Schema>);

pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: Vec<Parameter>,
    pub(crate) body: Option<RequestBody>,
    pub(crate) answers: Vec<(u16, Response)>,
    pub(crate) refusals: Vec<ErrorCode>,
    pub(crate) schemas: Vec<NamedSchema>,
    /// Another protocol prescribes the errors, all of which are among the answers.
    pub(crate) own_errors: bool,
    /// Whether it changes something, as every method but GET does unless said otherwise.
    pub(crate) changes: bool,
    /// Whether it may take longer than requests usually may.
    pub(crate) slow: bool,
    pub(crate) proves_itself: bool,
    pub(crate) said_again: bool,
    mount: Box<dyn Fn(MethodFilter) -> MethodRouter<State>>,
}

impl Endpoint {
    pub(crate) fn new<H, T>(name: &'static str, summary: &'static str, handler: H) -> Endpoint
    where
        H: Handler<T, State>,
        T: 'static,
    {
        Endpoint {
            name,
            summary,
            params: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: Vec::new(),
            schemas: Vec::new(),
            own_errors: false,
            changes: true,
            slow: false,
            proves_itself: false,
            said_again: false,
            mount: Box::new(move |method| on(method, handler.clone())),
        }
    }

    pub(crate) fn mount(&self, method: MethodFilter) -> MethodRouter<State> {
        (self.mount)(method)
    }

    pub(crate) fn query(self, name: &str, schema: RefOr<Schema>, description: &str) -> Endpoint {
        self.param(ParameterIn::Query, name, description, schema)
    }

    /// A parameter that must be there.
    pub(crate) fn needed_query(self, name: &str, schema: RefOr<Schema>, description: &str) -> Endpoint {
        let mut endpoint = self.query(name, schema, description);
        if let Some(param) = endpoint.params.last_mut() {
            param.required = Required::True;
        }
        endpoint
    }

    pub(crate) fn header(self, name: &str, description: &str) -> Endpoint {
        self.param(ParameterIn::Header, name, description, text())
    }

    /// Its project is not in the path.
    pub(crate) fn of_a_project(self) -> Endpoint {
        let description = "The project, unless a parameter names it.";
        self.param(ParameterIn::Header, "X-Project-ID", description, text_as(KnownFormat::Uuid))
    }

    fn param(mut self, place: ParameterIn, name: &str, description: &str, schema: RefOr<Schema>) -> Endpoint {
        let param = ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .required(Required::False)
            .description(Some(description))
            // Lists are written with commas: `a,b`.
            .explode(matches!(&schema, RefOr::T(Schema::Array(_))).then_some(false))
            .schema(Some(schema));
        self.params.push(param.build());
        self
    }

    /// A JSON body that may be left out when it is an object whose every field is optional.
    pub(crate) fn body<T: ToSchema>(mut self) -> Endpoint {
        let fields = serde_json::to_value(T::schema()).unwrap_or_default();
        let needed =
            fields["type"] == "array" || fields["required"].as_array().is_some_and(|names| !names.is_empty());
        let content = ContentBuilder::new().schema(Some(self.component::<T>())).build();
        self.body = Some(
            RequestBodyBuilder::new()
                .content("application/json", content)
                .required(Some(if needed { Required::True } else { Required::False }))
                .build(),
        );
        self.refuses(&[
            ErrorCode::ValidationError,
            ErrorCode::PayloadTooLarge,
            ErrorCode::UnsupportedMediaType,
        ])
    }

    /// The body `T` names exactly one of these fields, which its list of fields cannot say.
    pub(crate) fn exactly_one_of<T: ToSchema>(mut self, fields: &[&str]) -> Endpoint {
        let named = |field: &&str| json!({ "required": [field], "properties": { *field: { "not": { "type": "null" } } } });
        let alternatives: Vec<Value> = fields.iter().map(named).collect();
        for (_, schema) in self.schemas.iter_mut().filter(|(name, _)| *name == T::name()) {
            if let RefOr::T(Schema::Object(object)) = schema {
                let keywords = object.extensions.get_or_insert_default();
                keywords.insert("oneOf".to_owned(), Value::Array(alternatives.clone()));
            }
        }
        self
    }

    /// Another protocol prescribes what its errors look like; the answers name them all.
    pub(crate) fn of_another_protocol(mut self) -> Endpoint {
        self.own_errors = true;
        self
    }

    /// A manifest, as JSON or YAML. The flat form is accepted too; the schema is that of the normal one.
    pub(crate) fn manifest(mut self) -> Endpoint {
        let mut body = RequestBodyBuilder::new().required(Some(Required::True));
        for media_type in manifest_body::MEDIA_TYPES {
            let schema = self.component::<Manifest>();
            body = body.content(media_type, ContentBuilder::new().schema(Some(schema)).build());
        }
        self.body = Some(body.build());
        self.refuses(&[
            ErrorCode::ValidationError,
            ErrorCode::PayloadTooLarge,
            ErrorCode::UnsupportedMediaType,
        ])
    }

    /// Any bytes, read by the handler itself.
    pub(crate) fn bytes(mut self) -> Endpoint {
        let content = ContentBuilder::new().schema(Some(binary())).build();
        let body = RequestBodyBuilder::new().content("application/octet-stream", content);
        self.body = Some(body.required(Some(Required::True)).build());
        self
    }

    /// No deadline but the handler's own.
    pub(crate) fn takes_its_time(mut self) -> Endpoint {
        self.slow = true;
        self
    }

    /// What is sent proves who may send it, as a signature, a long address or a shared secret does: once it was accepted, it
    /// does not count as a stranger's. A thousand nodes may share an address.
    pub(crate) fn proves_itself(mut self) -> Endpoint {
        self.proves_itself = true;
        self
    }

    /// Saying it twice is saying it once, so it takes no idempotency key.
    pub(crate) fn said_again(mut self) -> Endpoint {
        self.said_again = true;
        self
    }

    pub(crate) fn answers_bytes(self, description: &str) -> Endpoint {
        self.answer(200, description, "application/octet-stream", binary())
    }

    /// A question that is too long for a path: nothing happens, so there is nothing to repeat and nothing to audit.
    pub(crate) fn changes_nothing(mut self) -> Endpoint {
        self.changes = false;
        self
    }

    /// A form, as other protocols have it; they have their own errors too.
    pub(crate) fn form<T: ToSchema>(mut self) -> Endpoint {
        self.own_errors = true;
        let content = ContentBuilder::new().schema(Some(self.component::<T>())).build();
        let body = RequestBodyBuilder::new().content("application/x-www-form-urlencoded", content);
        self.body = Some(body.required(Some(Required::True)).build());
        self
    }

    pub(crate) fn answers_nothing(mut self, description: &str) -> Endpoint {
        self.answers.push((204, ResponseBuilder::new().description(description).build()));
        self
    }

    pub(crate) fn answers<T: ToSchema>(mut self, status: u16, description: &str) -> Endpoint {
        let schema = self.component::<T>();
        self.answer(status, description, "application/json", schema.into())
    }

    /// A page of `T`s, with the parameters that every list has.
    pub(crate) fn answers_page<T: ToSchema>(mut self, description: &str) -> Endpoint {
        let items = ArrayBuilder::new().items(self.component::<T>());
        let cursor = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
        let page = ObjectBuilder::new()
            .property("items", items)
            .required("items")
            .property(
                "next_cursor",
                cursor.description(Some("Where the next page starts; null on the last one.")),
            )
            .required("next_cursor");
        let name = format!("{}Page", T::name());
        self.schemas.push((name.clone(), page.into()));
        self.pages().answer(200, description, "application/json", Ref::from_schema_name(name).into())
    }

    /// The parameters that every list has.
    pub(crate) fn pages(self) -> Endpoint {
        self.query("limit", whole_number(1, 200), "Items on a page: 1 to 200, 50 unless said otherwise.")
            .query("cursor", word(), "The `next_cursor` of the page before.")
    }

    /// The answer named last comes as text of this type too, for those who accept it.
    pub(crate) fn also_as(mut self, media_type: &str) -> Endpoint {
        if let Some((_, answer)) = self.answers.last_mut() {
            let content = ContentBuilder::new().schema(Some(text())).build();
            answer.content.insert(media_type.to_owned(), RefOr::T(content));
        }
        self
    }

    /// Server-sent events of these names. Their schema is that of one event, as readers of such documents expect.
    pub(crate) fn streams(self, events: &[&str], description: &str) -> Endpoint {
        self.answer(200, description, "text/event-stream", event_of(events))
    }

    /// The answer named last comes as server-sent events of these names instead, where the caller asks for that.
    pub(crate) fn or_streams(mut self, events: &[&str]) -> Endpoint {
        let content = ContentBuilder::new().schema(Some(event_of(events))).build();
        if let Some((_, answer)) = self.answers.last_mut() {
            answer.content.insert("text/event-stream".to_owned(), content.into());
        }
        self
    }

    fn answer(mut self, status: u16, description: &str, media_type: &str, schema: RefOr<Schema>) -> Endpoint {
        let content = ContentBuilder::new().schema(Some(schema)).build();
        self.answers.push((
            status,
            ResponseBuilder::new().description(description).content(media_type, content).build(),
        ));
        self
    }

    /// The answer named last carries an `ETag`.
    pub(crate) fn tagged(mut self) -> Endpoint {
        if let Some((_, answer)) = self.answers.last_mut() {
            headers::refer(answer, "ETag");
        }
        self
    }

    /// The codes this route answers besides those that every route may.
    pub(crate) fn refuses(mut self, codes: &[ErrorCode]) -> Endpoint {
        self.refusals.extend(codes);
        self
    }

    fn component<T: ToSchema>(&mut self) -> Ref {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        Ref::from_schema_name(T::name())
    }
}

fn event_of(names: &[&str]) -> RefOr<Schema> {
    let names = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names.iter().copied()));
    let event = ObjectBuilder::new()
        .property("event", names)
        .required("event")
        .property("data", text())
        .required("data")
        .property("id", text())
        .property("retry", ObjectBuilder::new().schema_type(Type::Integer));
    event.into()
}

pub(crate) fn text() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).into()
}

fn binary() -> RefOr<Schema> {
    text_as(KnownFormat::Binary)
}

/// A filter: whoever names it says something.
pub(crate) fn word() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).into()
}

/// One of these words.
pub(crate) fn one_of(words: &[&str]) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied())).into()
}

/// A filter of several words, separated by commas; at least one.
pub(crate) fn words<T: ToSchema>() -> RefOr<Schema> {
    ArrayBuilder::new().items(T::schema()).min_items(Some(1)).into()
}

pub(crate) fn text_like(pattern: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
}

pub(crate) fn whole_number(least: i64, most: i64) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least)).maximum(Some(most)).into()
}

pub(crate) fn switch() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Boolean).into()
}

pub(crate) fn text_as(format: KnownFormat) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).format(Some(SchemaFormat::KnownFormat(format))).into()
}
