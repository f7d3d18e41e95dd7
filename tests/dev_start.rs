//! `gpuaas dev` on its own cluster: made, started, adopted, refused and stopped.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;
use std::thread;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection};

use crate::support::cluster::Folder;
use crate::support::process::{Dev, gpuaas, interrupt, run, signal};

async fn connect(dev: &Dev) -> PgConnection {
    PgConnectOptions::from_str(&dev.database_url()).unwrap().connect().await.unwrap()
}

#[test]
fn dev_makes_a_database_serves_and_stops_everything() {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
    assert!(dev.get("/livez").starts_with("HTTP/1.1 200"));
    assert!(dev.ready["project_id"].is_string() && dev.ready["org_id"].is_string());
    let data = dev.data.clone();
    let (status, said) = dev.stop();
    assert!(status.success(), "{said}");
    assert!(!data.join("postgres/postmaster.pid").exists(), "the database server is gone");
    let log = fs::read_to_string(data.join("postgres.log")).unwrap();
    assert!(
        log.trim_end().ends_with("database system is shut down"),
        "a clean stop leaves nothing to recover: {log}"
    );
}

#[tokio::test]
async fn a_second_start_continues_on_the_same_data() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let dev = Dev::start(&data, &[]);
    let mut conn = connect(&dev).await;
    let act = "insert into engine.act (id, act, actor, correlation_id) values (gen_random_uuid(), 'note', 'me', 'c')";
    sqlx::raw_sql(act).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    dev.stop();

    let dev = Dev::start(&data, &[]);
    let mut conn = connect(&dev).await;
    let notes: i64 = sqlx::QueryBuilder::new("select count(*) from engine.act where act = 'note'")
        .build_query_scalar()
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert_eq!(notes, 1);
}

#[test]
fn a_server_left_by_a_killed_dev_is_adopted_and_stopped_at_the_end() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let dev = Dev::start(&data, &[]);
    let server = dev.postmaster_line(1);
    dev.kill();

    let dev = Dev::start(&data, &[]);
    assert_eq!(dev.postmaster_line(1), server, "no second server was started");
    assert!(dev.stop().0.success());
    assert!(!data.join("postgres/postmaster.pid").exists());
}

#[test]
fn dev_ends_and_says_why_when_an_adopted_server_does() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    Dev::start(&data, &[]).kill();

    let dev = Dev::start(&data, &[]);
    signal("-QUIT", dev.postmaster_line(1).parse().unwrap());
    let (status, said) = dev.ends();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("Postgres ended"), "{said}");
}

#[test]
fn a_password_that_the_server_refuses_is_said_at_once() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    Dev::start(&data, &[]).stop();
    let passwords = data.join("postgres-passwords.toml");
    let text = fs::read_to_string(&passwords).unwrap();
    fs::write(&passwords, text.replace("superuser = \"", "superuser = \"other")).unwrap();
    let said = run(&["dev", "--port", "0", "--data-dir", data.to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("Postgres refuses the superuser's password"), "{said:?}");
    assert!(!data.join("postgres/postmaster.pid").exists(), "the server it began is gone");
}

#[test]
fn a_second_dev_on_the_same_data_is_refused() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let dev = Dev::start(&data, &[]);
    let said = run(&["dev", "--port", "0", "--data-dir", data.to_str().unwrap()]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("is in use by process"), "{said:?}");
    assert!(dev.get("/livez").starts_with("HTTP/1.1 200"), "the first is unharmed");
}

#[test]
fn data_of_another_major_version_is_an_error_and_left_alone() {
    let folder = Folder::new();
    let cluster = folder.0.join("postgres");
    fs::create_dir(&cluster).unwrap();
    fs::write(cluster.join("PG_VERSION"), "9\n").unwrap();
    let said = run(&["dev", "--port", "0", "--data-dir", folder.0.to_str().unwrap()]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("made by Postgres 9"), "{said:?}");
    let left: Vec<_> = fs::read_dir(&cluster).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing was added to the data");
}

#[test]
fn a_cluster_whose_making_was_cut_short_is_made_anew() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let unfinished = data.join("postgres.new");
    fs::create_dir_all(&unfinished).unwrap();
    fs::write(unfinished.join("PG_VERSION"), "half").unwrap();
    let dev = Dev::start(&data, &[]);
    assert!(!unfinished.exists());
    assert!(dev.stop().0.success());
}

#[test]
fn ctrl_c_during_the_start_leaves_no_server_behind() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let mut starting = gpuaas(&["dev", "--port", "0", "--data-dir", data.to_str().unwrap()]).spawn().unwrap();
    // The log appears in the moment before the server does.
    while !data.join("postgres.log").exists() {
        thread::yield_now();
    }
    interrupt(&starting);
    assert!(starting.wait().unwrap().success());
    assert!(!data.join("postgres/postmaster.pid").exists());
    assert!(Dev::start(&data, &[]).stop().0.success(), "and the data is whole");
}

#[test]
fn a_taken_port_is_said_before_a_database_is_made() {
    let folder = Folder::new();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let said = run(&["dev", "--port", &port, "--data-dir", folder.0.to_str().unwrap()]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("is taken by another program"), "{said:?}");
    assert!(said.stderr.contains("another port (`dev --port`)"), "{said:?}");
    assert!(!folder.0.join("postgres").exists());
}

#[tokio::test]
async fn serving_may_not_change_tables_or_history() {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
    let mut conn = connect(&dev).await;
    for forbidden in [
        "create table engine.extra ()",
        "create table public.extra ()",
        "alter table engine.run drop column state",
        "update engine.act set actor = 'someone'",
        "delete from engine.act",
        "truncate engine.act",
        "delete from public._sqlx_migrations",
    ] {
        let refused = sqlx::raw_sql(forbidden).execute(&mut conn).await.unwrap_err();
        // insufficient_privilege
        assert_eq!(
            refused.as_database_error().and_then(|error| error.code()).as_deref(),
            Some("42501"),
            "{forbidden}"
        );
    }
}

#[test]
fn doctor_finds_nothing_wrong_with_a_fresh_dev() {
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &[]);
    let said = run(&["doctor", "--database-url", &dev.database_url()]);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn a_start_whose_agent_cannot_work_says_so_and_stops() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let nowhere = ["--docker-host", "unix:///nowhere/docker.sock"];
    Dev::start(&data, &nowhere).stop();
    fs::write(data.join("agent/journal"), "no entry\n{}\n").unwrap();
    let again = [&["dev", "--port", "0", "--data-dir", data.to_str().unwrap()], &nowhere[..]].concat();
    let said = run(&again);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("line 1 of the journal"), "{said:?}");
    assert!(!said.stdout.contains("is ready"), "{said:?}");
}

#[test]
fn traces_are_sent_to_the_configured_collector_before_the_end() {
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = collector.local_addr().unwrap();
    let received = thread::spawn(move || receive(&collector));
    let folder = Folder::new();
    let endpoint = format!("telemetry.otlp_endpoint=http://{address}");
    let dev = Dev::start(&folder.0.join("data"), &["--set", &endpoint]);
    dev.get("/version");
    assert!(dev.stop().0.success());
    TcpStream::connect(address).unwrap().write_all(THE_END.as_bytes()).unwrap();
    let told = received.join().unwrap();
    assert!(told.iter().all(|(request, _)| request == "POST /v1/traces HTTP/1.1"));
    // How many times they are sent depends on how long all of this took.
    let is_told = |body: &[u8]| body.windows(8).any(|word| word == b"/version");
    assert!(told.iter().any(|(_, body)| is_told(body)), "the request's span is in one of {}", told.len());
}

/// What ends a collector of the story.
const THE_END: &str = "GET /the_end HTTP/1.1\r\ncontent-length: 0\r\n\r\n";

/// The first lines and the bodies of requests until the end, each answered with 200.
fn receive(listener: &TcpListener) -> Vec<(String, Vec<u8>)> {
    let mut told = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while let Some((request, body)) = next_request(&mut reader) {
            if THE_END.starts_with(&request) {
                return told;
            }
            told.push((request, body));
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    }
    told
}

/// None once the other side has closed its connection.
fn next_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let length =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    Some((head[0].clone(), body))
}
