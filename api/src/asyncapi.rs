//! The document of events (`AsyncAPI` 3), written from the list of event types: one message for each, all in the form of
//! `CloudEvents`, on the stream of a project and in the bodies of webhooks.

use std::sync::OnceLock;

use domain::EventType;
use domain::event::CloudEvent;
use serde_json::{Map, Value, json};
use utoipa::PartialSchema;

use crate::json::Json;
use crate::router::PROJECT;

pub(crate) async fn serve() -> Json<&'static Value> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Json(DOCUMENT.get_or_init(document))
}

const ABOUT: &str = "What the platform tells the world. Events of a project have one order without gaps, `sequence`, and come at \
    least once each; `id` is the same for every delivery of an event. Types may be added.";

/// What `/api/v1/asyncapi.json` serves.
fn document() -> Value {
    let types = || EventType::all().map(EventType::as_str);
    let on_channel = |channel: &str| -> Vec<Value> {
        types().map(|name| json!({ "$ref": format!("#/channels/{channel}/messages/{name}") })).collect()
    };
    let messages: Map<String, Value> = types()
        .map(|name| (name.to_owned(), json!({ "$ref": format!("#/components/messages/{name}") })))
        .collect();
    json!({
        "asyncapi": "3.0.0",
        "info": { "title": "GPUaaS App Platform", "version": "v1", "description": ABOUT },
        "defaultContentType": "application/cloudevents+json",
        "channels": {
            "events": {
                "address": format!("{PROJECT}/events"),
                "title": "A project's events, as server-sent events",
                "description": "Ask with `Accept: text/event-stream`. `Last-Event-ID` resumes after an event's number; a \
                    `reset` says that what followed it is no longer kept.",
                "parameters": { "project_id": { "description": "The project." } },
                "messages": messages.clone(),
            },
            "webhooks": {
                "address": null,
                "title": "A project's events, sent to its webhooks",
                "description": "One POST per event, signed as Standard Webhooks says: `webhook-id`, `webhook-timestamp`, \
                    `webhook-signature`. Sent in the order of `sequence`, but one that was not taken comes again later, \
                    after those that follow it: order by `sequence`.",
                "messages": messages,
            },
        },
        "operations": {
            "streamEvents": {
                "action": "send", "channel": { "$ref": "#/channels/events" }, "messages": on_channel("events"),
            },
            "callWebhook": {
                "action": "send", "channel": { "$ref": "#/channels/webhooks" }, "messages": on_channel("webhooks"),
            },
        },
        "components": {
            "messages": EventType::all().map(message).collect::<Map<_, _>>(),
            "schemas": { "CloudEvent": CloudEvent::schema(), "EventType": EventType::schema() },
        },
    })
}

fn message(kind: EventType) -> (String, Value) {
    let payload = json!({ "allOf": [
        { "$ref": "#/components/schemas/CloudEvent" },
        { "type": "object", "properties": { "type": { "const": kind.as_str() } } },
    ] });
    let correlation = json!({ "location": "$message.payload#/correlationid" });
    let message = json!({
        "name": kind.as_str(), "summary": kind.explanation(), "contentType": "application/cloudevents+json",
        "correlationId": correlation, "payload": payload,
    });
    (kind.as_str().to_owned(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/asyncapi.json");

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "whether to rewrite the snapshot is asked of the environment"
    )]
    fn the_stored_document_of_events_is_the_served_one() {
        let now = format!("{}\n", serde_json::to_string_pretty(&document()).unwrap());
        if std::env::var("UPDATE_SNAPSHOTS").is_ok() {
            std::fs::write(STORED, &now).unwrap();
        }
        let stored = std::fs::read_to_string(STORED).unwrap_or_default();
        assert!(stored == now, "docs/asyncapi.json is stale: run the tests with UPDATE_SNAPSHOTS=1");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        for reference in document.to_string().split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
        }
    }
}
