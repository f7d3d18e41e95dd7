//! From the transaction that tells an event to the client that follows: a thousand events a second, each in one of its
//! own, through the real sequencer and the real API over a real connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::api::{Build, Keys, State};
use axum::Router;
use clients::clock::SystemClock;
use clients::oidc::Verifier;
use clients::seal::Sealer;
use clients::signing::{SigningKey, SigningKeys};
use clients::tokens::Minter;
use domain::event::NewEvent;
use domain::{EventType, ProjectRole};
use engine::{Engine, Settings};
use serde_json::json;
use sqlx::PgPool;
use store::outbox;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;
use workflows::sequencer::{Hints, Sequencer};

use crate::api::settle;
use crate::failure::Failure;
use crate::report::{Bar, Figure, percentile, say};
use crate::server::Database;

const URL: &str = "http://bench.example";
const AUDIENCE: &str = "gpuaas-api";
const PER_SECOND: u64 = 1_000;
const WRITERS: u64 = 8;
/// How long the last event may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// When each event's transaction was begun.
type Told = Arc<Mutex<HashMap<Uuid, Instant>>>;

pub async fn measure(database: &Database, seconds: u64) -> Result<Vec<Figure>, Failure> {
    say(&format!("metering: {PER_SECOND} events a second for {seconds} s, followed as a stream…"));
    let setup = |error: &dyn std::fmt::Display| Failure::Setup(error.to_string());
    let engine = Engine::new(database.options.clone(), Settings::default());
    let hints = Hints::default();
    let sequencer = Sequencer::start(&engine, &hints);
    let clock = Arc::new(SystemClock);
    let key = SigningKey::generate().map_err(|error| setup(&error))?;
    let minter = Minter::new(URL, AUDIENCE, SigningKeys::one(key), clock.clone());
    let bearer = settle(&database.pool, ProjectRole::Viewer).await?;
    let (org, project) = (bearer.org_id.unwrap_or_default(), bearer.project_id.unwrap_or_default());
    let token = minter.mint(bearer).map_err(|error| setup(&error))?.access_token.expose().clone();
    let verifier = Verifier::new(Vec::new(), true, clock.clone()).map_err(|error| setup(&error))?;
    let sealer = Sealer::from_lines(Sealer::generate_line("k1").expose()).map_err(|error| setup(&error))?;
    let keys = Keys { verifier: Arc::new(verifier), minter, clock, sealer };
    let build = Build { name: "bench", version: "0", git: None, schema: 0 };
    let state = State::new(engine.clone(), build, keys).hinting(hints.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Failure::io("listen"))?;
    let address = listener.local_addr().map_err(Failure::io("listen"))?;
    let serving = tokio::spawn(::api::serve(listener, state, Router::new(), ::api::Ending::default()));

    let path = format!("/api/v1/projects/{project}/events");
    let stream = TcpStream::connect(address).await.map_err(Failure::io("connect"))?;
    let follower = Follower::open(stream, &path, &token).await?;
    let told = Told::default();
    let events = PER_SECOND * seconds;
    let following = tokio::spawn(follower.follow(events));
    let began = Instant::now();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let writer =
            write(database.pool.clone(), hints.clone(), (org, project), events / WRITERS, told.clone());
        writers.push(tokio::spawn(writer));
    }
    for writer in writers {
        writer.await.map_err(|error| setup(&error))??;
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    let heard = tokio::time::timeout(PATIENCE, following).await.map_err(|_| setup(&"events were lost"))?;
    let heard = heard.map_err(|error| setup(&error))??;
    let times: Vec<f64> = {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        let took = |(id, at): &(Uuid, Instant)| Some((*at - *told.get(id)?).as_secs_f64() * 1e3);
        heard.iter().filter_map(took).collect()
    };
    serving.abort();
    sequencer.stop().await;
    engine.close().await;
    Ok(vec![Figure {
        name: "outbox to stream p99",
        value: percentile(&times, 99.0),
        unit: "ms",
        bar: Bar::AtMost(100.0),
        beside: format!(
            "{} events at {rate:.0} a second, p50 {:.0} ms, longest {:.0} ms",
            times.len(),
            percentile(&times, 50.0),
            percentile(&times, 100.0)
        ),
    }])
}

/// Tells its share, evenly spread; whoever is late makes up for it.
async fn write(
    pool: PgPool,
    hints: Hints,
    owner: (Uuid, Uuid),
    events: u64,
    told: Told,
) -> Result<(), Failure> {
    let mut ticks =
        tokio::time::interval(Duration::from_secs(1) / u32::try_from(PER_SECOND / WRITERS).unwrap_or(1));
    let mut conn = pool.acquire().await?;
    for number in 0..events {
        ticks.tick().await;
        let event = NewEvent::of_project(owner, EventType::LedgerPosted, number, &json!({}), "c-bench");
        let began = Instant::now();
        let id = outbox::insert(&mut conn, &event).await?;
        hints.written();
        told.lock().unwrap_or_else(PoisonError::into_inner).insert(id, began);
    }
    Ok(())
}

struct Follower(BufReader<TcpStream>);

impl Follower {
    /// HTTP/1.0, whose bodies come as they are. Returns once the stream has begun.
    async fn open(mut stream: TcpStream, path: &str, token: &str) -> Result<Follower, Failure> {
        let head = format!(
            "GET {path} HTTP/1.0\r\nHost: bench\r\nAccept: text/event-stream\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.map_err(Failure::io("ask for the stream"))?;
        let mut follower = Follower(BufReader::new(stream));
        let first = follower.line().await?;
        if !first.contains(" 200 ") {
            return Err(Failure::Setup(format!("the stream was refused: {first}")));
        }
        // The first block only says how soon to come back; it is sent once the stream stands.
        while !follower.line().await?.starts_with("retry:") {}
        Ok(follower)
    }

    async fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.0.read_line(&mut line).await.map_err(Failure::io("read the stream"))? {
            0 => Err(Failure::Setup("the stream ended".into())),
            _ => Ok(line),
        }
    }

    /// Each event, and when it arrived.
    async fn follow(mut self, events: u64) -> Result<Vec<(Uuid, Instant)>, Failure> {
        let mut heard = Vec::new();
        while (heard.len() as u64) < events {
            let line = self.line().await?;
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let now = Instant::now();
            let event: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
            heard.extend(event["id"].as_str().and_then(|id| Some((id.parse().ok()?, now))));
        }
        Ok(heard)
    }
}
