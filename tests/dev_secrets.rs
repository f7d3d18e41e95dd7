//! Secrets stay where they belong. A story that uses every kind of them is played at the highest log level, with
//! traces; then everything that was written — log, traces, the whole database, error answers — is searched for each.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use clients::assertion;
use clients::clock::{Clock, SystemClock};
use clients::signing::SigningKey;
use serde_json::{Value, json};

use crate::support::cluster::Folder;
use crate::support::process::Dev;

/// What was used, by the name a failure shall call it.
#[derive(Default)]
pub struct Secrets(Vec<(String, String)>);

impl Secrets {
    pub fn keep(&mut self, name: &str, secret: &str) -> String {
        assert!(secret.len() >= 8, "{name} is too short to be searched for");
        self.0.push((name.to_owned(), secret.to_owned()));
        secret.to_owned()
    }

    /// A PEM file is found by its longest line, however its line breaks were written.
    pub fn keep_pem(&mut self, name: &str, pem: &str) -> String {
        self.keep(name, pem.lines().max_by_key(|line| line.len()).unwrap());
        pem.to_owned()
    }

    pub fn assert_absent(&self, place: &str, text: &str) {
        assert!(!text.is_empty(), "there is nothing to search in {place}");
        for (name, secret) in &self.0 {
            assert!(!text.contains(secret.as_str()), "{name} is in {place}");
        }
    }
}

#[test]
fn no_secret_reaches_log_traces_database_or_errors() {
    let folder = Folder::new();
    let (collector, received) = collect_traces();
    let traces = format!("telemetry.otlp_endpoint={collector}");
    let dev = Dev::start(&folder.0.join("data"), &["--set", "log.filter=trace", "--set", &traces]);
    let mut secrets = Secrets::default();
    let errors = play(&dev, &mut secrets);
    own_keys(&dev, &mut secrets);

    secrets.assert_absent("the error answers", &errors);
    secrets.assert_absent("the database", &dump(&dev));
    let (status, log) = dev.stop();
    assert!(status.success() && log.contains("answered"), "the story is in the log");
    secrets.assert_absent("the log", &log);
    let traces: Vec<String> = received.try_iter().collect();
    secrets.assert_absent("the traces", &traces.join("\n"));
}

/// Uses every kind of secret, well and badly; answers what the refusals said.
fn play(dev: &Dev, secrets: &mut Secrets) -> String {
    let mut errors = String::new();
    let mut refuse = |(status, body): (u16, Value)| {
        assert!(status >= 400, "{status} {body}");
        errors.push_str(&body.to_string());
    };
    let person = secrets.keep("a person's token", &dev.token("project-admin"));
    let accounts = format!("/api/v1/projects/{}/service-accounts", dev.ready["project_id"].as_str().unwrap());
    let (status, made) = dev.post_as(&accounts, &person, &json!({ "name": "pipeline" }));
    assert_eq!(status, 201, "{made}");
    let account = made["id"].as_str().unwrap();
    let pem = secrets.keep_pem("a service account's key", made["private_key_pem"].as_str().unwrap());
    let (status, rotated) = dev.post_as(&format!("{accounts}/{account}/rotate-key"), &person, &json!({}));
    assert_eq!(status, 200, "{rotated}");
    secrets.keep_pem("a rotated key", rotated["private_key_pem"].as_str().unwrap());

    let token_path = "/api/v1/auth/service-account/token";
    let ask = |proof: Value| {
        let mut body = json!({ "service_account_id": account, "key_id": made["key_id"] });
        body.as_object_mut().unwrap().extend(proof.as_object().unwrap().clone());
        dev.post_as(token_path, "", &body)
    };
    let (status, answer) = ask(json!({ "private_key_pem": pem }));
    assert_eq!(status, 200, "{answer}");
    secrets.keep("a token for a shown key", answer["access_token"].as_str().unwrap());
    let key = SigningKey::from_pem(&pem).unwrap();
    let api_url = dev.ready["api_url"].as_str().unwrap();
    let assertion = assertion::sign(&key, account, api_url, SystemClock.now()).unwrap();
    secrets.keep("an assertion", &assertion);
    let (status, answer) = ask(json!({ "assertion": assertion }));
    assert_eq!(status, 200, "{answer}");
    let machine = secrets.keep("a token for an assertion", answer["access_token"].as_str().unwrap());
    assert!(dev.get_as("/api/v1/me", &machine).starts_with("HTTP/1.1 200"));

    refuse(ask(json!({ "assertion": assertion })));
    let stranger = SigningKey::generate().unwrap().private_key_pem().unwrap();
    refuse(ask(json!({ "private_key_pem": secrets.keep_pem("a stranger's key", stranger.expose()) })));
    refuse(dev.post_as(&accounts, &secrets.keep("a garbled token", "garbled-token-hunter2"), &json!({})));
    refuse(ask(json!({ "password": secrets.keep("a field nobody knows", "unknown-field-hunter2") })));
    give_out(dev, &person, secrets);
    errors
}

/// What the platform keeps for others, and what it gives out once.
fn give_out(dev: &Dev, person: &str, secrets: &mut Secrets) {
    let project = format!("/api/v1/projects/{}", dev.ready["project_id"].as_str().unwrap());
    let made = |path: &str, token: &str, body: &Value| {
        let (status, made) = dev.post_as(path, token, body);
        assert!([200, 201].contains(&status), "{path}: {status} {made}");
        made
    };
    let value = secrets.keep("a secret in custody", "model-hub-hunter2");
    let body = json!({ "name": "model-hub", "value": value });
    let kept = made(&format!("{project}/access-credentials"), person, &body);
    let path = format!("{project}/access-credentials/{}/rotate", kept["id"].as_str().unwrap());
    made(&path, person, &json!({ "value": secrets.keep("its next value", "model-hub-hunter3") }));
    let hook = made(&format!("{project}/webhooks"), person, &json!({ "url": "https://hooks.invalid/" }));
    secrets.keep("a webhook's secret", hook["secret"].as_str().unwrap());
    let admin = secrets.keep("the administrator's token", &dev.token("admin"));
    let node = made("/api/v1/admin/nodes", &admin, &json!({ "name": "gpu-2" }));
    secrets.keep("an enrolment token", node["enrolment_token"].as_str().unwrap());
}

/// The keys of the process itself, and its passwords.
fn own_keys(dev: &Dev, secrets: &mut Secrets) {
    let read = |name: &str| fs::read_to_string(dev.data.join(name)).unwrap();
    secrets.keep_pem("the issuer's key", &read("issuer-key.pem"));
    secrets.keep_pem("the signing key", &read("signing-keys.pem"));
    secrets.keep("the sealing key", read("sealing-keys").split_whitespace().nth(1).unwrap());
    for line in read("postgres-passwords.toml").lines() {
        let (name, password) = line.split_once(" = ").unwrap();
        secrets.keep(&format!("the password of {name}"), password.trim_matches('"'));
    }
}

/// Every row of every table of ours, as the serving role sees them.
fn dump(dev: &Dev) -> String {
    let psql = |statement: &str| {
        let output =
            Command::new("psql").arg(dev.database_url()).args(["-XAtc", statement]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let tables = psql(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('public', 'engine', 'apalis')
         and has_table_privilege(format('%I.%I', schemaname, tablename), 'select')",
    );
    assert!(tables.contains("public.audit") && tables.contains("public.service_account_keys"), "{tables}");
    tables.lines().map(|table| psql(&format!("select row_to_json(t) from {table} t"))).collect()
}

/// A collector's address, and the bodies it receives.
fn collect_traces() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let tell = tell.clone();
            thread::spawn(move || while receive(&stream, |body| tell.send(body).is_ok()) {});
        }
    });
    (address, received)
}

/// One request of a connection; false when there are no more.
fn receive(mut stream: &TcpStream, keep: impl FnOnce(String) -> bool) -> bool {
    let mut reader = BufReader::new(stream);
    let head: Vec<String> =
        reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let length =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let Some(length) = length else { return false };
    let mut body = vec![0; length];
    reader.read_exact(&mut body).is_ok()
        && keep(String::from_utf8_lossy(&body).into_owned())
        && stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_ok()
}
