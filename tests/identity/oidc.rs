//! People of an issuer that shares no code with us: npm's oidc-provider, started by the story on a free port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use chrono::TimeDelta;
use clients::TokenFault;
use clients::clock::{Clock, ManualClock, SystemClock};
use clients::oidc::{Issuer, IssuerKeys, Verifier};
use serde_json::Value;

use crate::support::cluster::Folder;
use crate::support::process::Dev;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/identity/issuer");
const AUDIENCE: &str = "urn:gpuaas";

/// Ends with the test, because its stdin closes then.
struct Independent {
    process: Child,
    url: String,
}

impl Independent {
    fn start() -> Independent {
        let mut process = Command::new("node")
            .arg("issuer.mjs")
            .current_dir(FOLDER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs: ./dev test installs it");
        let mut url = String::new();
        let said = BufReader::new(process.stdout.take().expect("piped")).read_line(&mut url);
        assert!(said.is_ok_and(|bytes| bytes > 0), "the issuer starts: ./dev test installs what it needs");
        Independent { process, url: url.trim().to_owned() }
    }

    /// A token meant for `audience`, as the issuer's client gets it.
    fn token(&self, audience: &str) -> String {
        let form = format!("grant_type=client_credentials&resource={audience}");
        let answer: Value = serde_json::from_str(&self.post("/token", &form)).expect("JSON");
        answer["access_token"].as_str().unwrap_or_else(|| panic!("no token: {answer}")).to_owned()
    }

    fn rotate(&self) {
        self.post("/rotate", "");
    }

    fn post(&self, path: &str, form: &str) -> String {
        let mut stream =
            TcpStream::connect(self.url.strip_prefix("http://").expect("http")).expect("it listens");
        let (length, pipeline) = (form.len(), "cGlwZWxpbmU6cGlwZWxpbmU=");
        let head = format!(
            "POST {path} HTTP/1.0\r\nhost: issuer\r\nauthorization: Basic {pipeline}\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + form).as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }
}

impl Drop for Independent {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// A platform that trusts the issuer, and the clock by which it judges.
fn trusting(issuer: &Independent) -> (Verifier, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let trusted = Issuer {
        name: "independent".to_owned(),
        url: issuer.url.clone(),
        audiences: vec![AUDIENCE.to_owned()],
        keys: IssuerKeys::Discovered,
    };
    (Verifier::new(vec![trusted], true, clock.clone()).unwrap(), clock)
}

#[tokio::test]
async fn a_token_of_an_independent_issuer_is_believed_if_it_is_meant_for_us() {
    let issuer = Independent::start();
    let (platform, clock) = trusting(&issuer);
    let token = issuer.token(AUDIENCE);
    assert_eq!(platform.verify(&token).await.unwrap().subject, "pipeline");
    let elsewhere = issuer.token("urn:elsewhere");
    assert_eq!(platform.verify(&elsewhere).await.unwrap_err(), TokenFault::WrongAudience);
    clock.advance(TimeDelta::seconds(300 + 31));
    assert_eq!(platform.verify(&token).await.unwrap_err(), TokenFault::Expired);
}

#[tokio::test]
async fn an_issuers_new_key_is_found_and_its_old_one_forgotten() {
    let issuer = Independent::start();
    let (platform, clock) = trusting(&issuer);
    let before = issuer.token(AUDIENCE);
    platform.verify(&before).await.unwrap();
    issuer.rotate();
    clock.advance(TimeDelta::seconds(10));
    platform.verify(&issuer.token(AUDIENCE)).await.unwrap();
    let fault = platform.verify(&before).await.unwrap_err();
    assert_eq!(fault, TokenFault::Invalid("it is signed by an unknown key"));
}

#[tokio::test]
async fn a_project_may_trust_an_independent_issuer_of_its_own() {
    let issuer = Independent::start();
    let platform = Verifier::new(Vec::new(), true, Arc::new(SystemClock)).unwrap();
    let token = issuer.token("urn:project");
    assert!(platform.verify(&token).await.is_err(), "nobody trusts it for everybody");
    let claims = platform.verify_federated(&token, &issuer.url, "urn:project").await.unwrap();
    assert_eq!((claims.issuer, claims.subject), (issuer.url.clone(), "pipeline".to_owned()));
}

#[test]
fn the_first_request_of_a_believed_person_makes_them_known() {
    let issuer = Independent::start();
    let folder = Folder::new();
    let trust = format!("auth.issuers={} {AUDIENCE}", issuer.url);
    let dev = Dev::start(&folder.0.join("data"), &["--set", &trust, "--set", "auth.loopback_http=true"]);
    let answer = dev.get_as("/api/v1/me", &issuer.token(AUDIENCE));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let answer = dev.get_as("/api/v1/me", &issuer.token("urn:elsewhere"));
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let path = format!("/api/v1/projects/{}/workflows", dev.ready["project_id"].as_str().unwrap());
    let answer = dev.get_as(&path, &issuer.token(AUDIENCE));
    assert!(answer.starts_with("HTTP/1.1 404"), "known, and a member of nothing: {answer}");
}
