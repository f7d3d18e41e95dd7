//! The pages without the console: one sentence, and what to do next. No script, nothing from elsewhere.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.55 system-ui,sans-serif;max-width:34rem;margin:14vh auto;padding:0 1.25rem;\
    color-scheme:light dark}h1{font-size:1.25rem}code{font-size:.9em}";

pub(super) struct Message {
    status: StatusCode,
    title: &'static str,
    /// HTML, written here and nowhere else: nothing of a request gets into it.
    text: &'static str,
}

impl Message {
    pub(super) const NOT_BUILT: Message = Message {
        status: StatusCode::OK,
        title: "This server was built without the console",
        text: "The API is at <code>/api/v1</code> and described at <a href=/api/v1/openapi.json>/api/v1/openapi.json\
            </a>. To have the console here, install Node.js 20.19 or newer and start the server by <code>./dev run\
            </code>, which builds both.",
    };
    pub(super) const NO_ISSUER: Message = Message {
        status: StatusCode::SERVICE_UNAVAILABLE,
        title: "Nobody can sign in here",
        text: "This server trusts no issuer. An operator sets <code>auth.issuers</code> and \
            <code>auth.console_client_id</code>.",
    };
    pub(super) const NOT_BEGUN: Message = Message {
        status: StatusCode::BAD_REQUEST,
        title: "This sign-in was not begun here",
        text: "It took too long, was begun in another browser, or was used before. \
            <a href=/console/login>Sign in again</a>.",
    };
    pub(super) const REFUSED: Message = Message {
        status: StatusCode::BAD_REQUEST,
        title: "The issuer did not sign you in",
        text: "You may have turned back, or its answer was not meant for this console. \
            <a href=/console/login>Try again</a>.",
    };
    pub(super) const UNAVAILABLE: Message = Message {
        status: StatusCode::BAD_GATEWAY,
        title: "Signing in is not possible at the moment",
        text: "The issuer or the database does not answer. <a href=/console/login>Try again</a> in a minute; \
            the server's log says more.",
    };

    pub(super) fn show(self) -> Response {
        let Message { status, title, text } = self;
        let html = format!(
            "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
             <title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1><p>{text}</p></main></html>"
        );
        let headers = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-store"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        (status, headers, Html(html)).into_response()
    }
}
