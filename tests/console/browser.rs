//! A browser of a story: it keeps cookies, follows nothing by itself, and can be told to send what it should not.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use crate::http::Http;

#[derive(Clone)]
pub struct Browser {
    pub http: Http,
    pub cookies: BTreeMap<String, String>,
}

pub struct Page {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Page {
    pub fn location(&self) -> &str {
        self.headers["location"].to_str().expect("an address")
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }

    /// The attributes under which a cookie was set.
    pub fn set_cookie(&self, name: &str) -> &str {
        let all = self.headers.get_all("set-cookie").iter().map(|value| value.to_str().expect("text"));
        all.into_iter().find(|text| text.starts_with(&format!("{name}="))).expect("the cookie is set")
    }
}

impl Browser {
    pub fn at(http: &Http) -> Browser {
        Browser { http: http.clone(), cookies: BTreeMap::new() }
    }

    pub async fn send(&mut self, method: Method, path: &str, headers: &[(&str, &str)]) -> Page {
        let mut request = Request::builder().method(method).uri(path);
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.http.open(request.body(Body::empty()).expect("a request")).await;
        let (head, body) = answer.into_parts();
        for set in head.headers.get_all("set-cookie") {
            let (name, rest) = set.to_str().expect("text").split_once('=').expect("a cookie");
            let value = rest.split(';').next().unwrap_or_default();
            if rest.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let bytes = to_bytes(body, usize::MAX).await.expect("a whole body");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Page { status: head.status, headers: head.headers, text }
    }

    pub async fn get(&mut self, path: &str) -> Page {
        self.send(Method::GET, path, &[]).await
    }

    /// Asks to sign in; answers where the issuer would send the browser back to, as this person.
    pub async fn begin(&mut self, username: &str, return_to: &str) -> String {
        let login = self.get(&format!("/console/login?return_to={return_to}")).await;
        assert_eq!(login.status, 303, "{}", login.text);
        let address = Url::parse(login.location()).expect("an address");
        let pairs: BTreeMap<String, String> = address.query_pairs().into_owned().collect();
        let code = format!("{username}/{}/{}", pairs["nonce"], pairs["code_challenge"]);
        let mut back = Url::parse(&pairs["redirect_uri"]).expect("an address");
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &pairs["state"]);
        format!("{}?{}", back.path(), back.query().unwrap_or_default())
    }

    pub async fn sign_in(&mut self, username: &str) -> Page {
        let back = self.begin(username, "/console/").await;
        let landed = self.get(&back).await;
        assert_eq!(landed.status, 303, "{}", landed.text);
        landed
    }

    /// The token for changes, as the page asks for it.
    pub async fn csrf(&mut self) -> String {
        let session = self.get("/console/session").await;
        assert_eq!(session.status, 200, "{}", session.text);
        session.json()["session"]["csrf_token"].as_str().expect("a token").to_owned()
    }
}

pub fn challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}
