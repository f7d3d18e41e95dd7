//! The few pages a person sees: one form, one sentence. No script, nothing from elsewhere, not to be framed.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// A form may only lead back here, or on to a program of this machine that waits for the answer.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; \
    form-action 'self' http://127.0.0.1:* http://localhost:*";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:12vh auto;padding:0 1rem;\
    color-scheme:light dark}label{display:block;margin:.75rem 0}input{display:block;width:100%;font:inherit;\
    padding:.4rem;box-sizing:border-box}button{font:inherit;padding:.4rem 1.2rem;margin-top:.5rem}\
    [role=alert]{border-left:.25rem solid #c33;padding-left:.6rem}";

pub fn message(status: StatusCode, title: &str, text: &str) -> Response {
    shell(status, title, &format!("<p>{}</p>", escape(text)))
}

/// A form that asks for name and password, and posts them to the address it stands at.
pub struct SignIn<'a> {
    pub title: &'a str,
    /// Fields that the person does not fill in.
    pub hidden: Vec<(&'a str, &'a str)>,
    /// A field before name and password: label, name, value.
    pub first: Option<(&'a str, &'a str, &'a str)>,
    pub problem: Option<&'a str>,
}

impl SignIn<'_> {
    pub fn show(&self) -> Response {
        let mut form = "<form method=post>".to_owned();
        if let Some(problem) = self.problem {
            form += &format!("<p role=alert>{}</p>", escape(problem));
        }
        for (name, value) in &self.hidden {
            form += &format!("<input type=hidden name=\"{}\" value=\"{}\">", escape(name), escape(value));
        }
        if let Some((label, name, value)) = self.first {
            let (label, name, value) = (escape(label), escape(name), escape(value));
            form += &format!("<label>{label}<input name=\"{name}\" value=\"{value}\" required></label>");
        }
        form += "<label>Name<input name=username autocomplete=username required></label>\
            <label>Password<input name=password type=password autocomplete=current-password required></label>\
            <button>Sign in</button></form>\
            <p>The people of gpuaas dev are admin, project-admin, operator, publisher and viewer. \
            Each has its own name as password.</p>";
        let status = if self.problem.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        shell(status, self.title, &form)
    }
}

fn shell(status: StatusCode, title: &str, content: &str) -> Response {
    let title = escape(title);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>{content}</main></html>"
    );
    let headers = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, Html(html)).into_response()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
