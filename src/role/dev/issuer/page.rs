//! The few pages a person sees: one form, one sentence. No script, nothing from elsewhere, not to be framed.

use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// A form may only lead back here, or on to a program of this machine that waits for the answer.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'; \
    form-action 'self' http://127.0.0.1:* http://localhost:*";

/// The console's colours, by day and by night.
const STYLE: &str = ":root{--paper:#f2f5f6;--sheet:#fff;--ink:#15242b;--soft:#53636b;--line:#c3ced3;--go:#096672;--on:#fff;\
    color-scheme:light dark}@media(prefers-color-scheme:dark){:root{--paper:#0e1518;--sheet:#151f23;--ink:#e4ebed;\
    --soft:#9fb1b8;--line:#3a4a51;--go:#5cc4cc;--on:#08191c}}body{margin:0;background:var(--paper);color:var(--ink);\
    font:15px/1.5 'IBM Plex Sans',system-ui,sans-serif}main{max-width:22rem;margin:12vh auto;padding:1.75rem 2rem;\
    background:var(--sheet);border:1px solid var(--line);border-radius:10px}h1{font-size:1.35rem;margin:0 0 1rem}\
    label{display:block;margin:.9rem 0}input{display:block;width:100%;box-sizing:border-box;margin-top:.2rem;\
    padding:.5rem .7rem;font:inherit;color:inherit;background:var(--paper);border:1px solid var(--line);border-radius:5px}\
    button{width:100%;margin-top:.5rem;padding:.55rem;font:inherit;font-weight:600;color:var(--on);background:var(--go);\
    border:0;border-radius:5px;cursor:pointer}p{color:var(--soft);font-size:.9rem;margin:1.25rem 0 0}\
    [role=alert]{color:var(--ink);border-left:.25rem solid #c33;padding-left:.6rem}\
    :focus-visible{outline:2px solid var(--go);outline-offset:2px}";

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
