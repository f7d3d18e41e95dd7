//! The answer of a change: what is sent now, and what is kept to be sent again.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value, json};
use store::idempotency::Recorded;

use crate::error::ApiError;
use crate::etag;

pub(crate) struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, String)>,
    /// Empty when there is nothing to say.
    body: Vec<u8>,
    /// Fields of the body that are shown once and never kept.
    secrets: &'static [&'static str],
}

impl Answer {
    pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Answer, ApiError> {
        let body = serde_json::to_vec(body).map_err(|error| ApiError::internal(&error))?;
        let headers = vec![(header::CONTENT_TYPE, "application/json".to_owned())];
        Ok(Answer { status, headers, body, secrets: &[] })
    }

    pub(crate) fn ok(body: &impl Serialize) -> Result<Answer, ApiError> {
        Answer::json(StatusCode::OK, body)
    }

    pub(crate) fn created(location: String, body: &impl Serialize) -> Result<Answer, ApiError> {
        Ok(Answer::json(StatusCode::CREATED, body)?.with(header::LOCATION, location))
    }

    pub(crate) fn empty() -> Answer {
        Answer { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Vec::new(), secrets: &[] }
    }

    pub(crate) fn with(mut self, name: HeaderName, value: String) -> Answer {
        self.headers.push((name, value));
        self
    }

    /// The tag of this very body: what a read of the resource answers next.
    pub(crate) fn tagged(self) -> Answer {
        let tag = etag::tag(&self.body);
        self.with(header::ETAG, tag)
    }

    /// These fields are delivered now and never again; one inside another is named with a dot.
    pub(crate) fn once(mut self, secrets: &'static [&'static str]) -> Answer {
        self.secrets = secrets;
        self
    }

    pub(super) fn recorded(&self, body_hash: Vec<u8>) -> Result<Recorded, ApiError> {
        let headers: Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
        Ok(Recorded {
            body_hash,
            status: self.status.as_u16().cast_signed(),
            headers: Value::Object(headers),
            body: self.without_secrets()?,
        })
    }

    fn without_secrets(&self) -> Result<Vec<u8>, ApiError> {
        if self.secrets.is_empty() {
            return Ok(self.body.clone());
        }
        let mut body: Value =
            serde_json::from_slice(&self.body).map_err(|error| ApiError::internal(&error))?;
        for name in self.secrets {
            let inner = name.split('.').try_fold(&mut body, |value, part| value.get_mut(part));
            if let Some(secret) = inner {
                *secret = Value::Null;
            }
        }
        body["secret_already_delivered"] = json!(true);
        serde_json::to_vec(&body).map_err(|error| ApiError::internal(&error))
    }

    pub(super) fn replay(recorded: Recorded) -> Answer {
        let headers =
            recorded.headers.as_object().into_iter().flatten().filter_map(|(name, value)| {
                Some((name.parse::<HeaderName>().ok()?, value.as_str()?.to_owned()))
            });
        Answer {
            status: StatusCode::from_u16(recorded.status.cast_unsigned()).unwrap_or(StatusCode::OK),
            headers: headers.collect(),
            body: recorded.body,
            secrets: &[],
        }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        response.headers_mut().remove(header::CONTENT_TYPE);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_the_first_answer_without_its_secrets() {
        let body = json!({ "id": 7, "private_key_pem": "-----BEGIN" });
        let first = Answer::created("/things/7".to_owned(), &body).unwrap().once(&["private_key_pem"]);
        let again = Answer::replay(first.recorded(vec![1]).unwrap());
        assert_eq!((again.status, &again.headers), (first.status, &first.headers));
        let kept: Value = serde_json::from_slice(&again.body).unwrap();
        assert_eq!(kept, json!({ "id": 7, "private_key_pem": null, "secret_already_delivered": true }));
    }

    #[test]
    fn an_answer_without_secrets_is_kept_to_the_byte() {
        let first = Answer::ok(&json!({ "b": 1, "a": [2.50, "x"] })).unwrap().tagged();
        assert_eq!(first.recorded(vec![]).unwrap().body, first.body);
    }
}
