//! A platform that delivers, and receivers that do as they are told.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use activities::{Env, TaskSigners};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use clients::webhook::WebhookSender;
use engine::{RunState, Start, Workers};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use workflows::reconcilers::clean_up::CleanUp;
use workflows::sequencer::number_all;
use workflows::webhook::dispatch;

use crate::http::{Http, admin, project};
use crate::support::realm::EXAMPLE;
use crate::support::story::{Story, quick};

pub struct Office {
    pub story: Story,
    pub http: Http,
    workers: Workers,
}

impl Office {
    /// Private addresses are allowed, as they must be for receivers on this machine.
    pub async fn open() -> Office {
        Office::allowing(sender()).await
    }

    /// As open, and receivers may take their time: they are held until the story lets them answer.
    pub async fn patient() -> Office {
        Office::allowing(WebhookSender::new(Duration::from_secs(60)).unwrap()).await
    }

    async fn allowing(sender: WebhookSender) -> Office {
        let office = Office::sending(sender).await;
        let path = admin(&format!("/policies/project/{EXAMPLE}/webhooks.allow_private_addresses"));
        office.http.put(&path, json!({ "value": true })).await.with(200);
        office
    }

    pub async fn closed() -> Office {
        Office::sending(sender()).await
    }

    async fn sending(sender: WebhookSender) -> Office {
        let story = Story::idle(quick(), None).await;
        let http = Http::over(&story).await;
        let signers = TaskSigners::new(http.realm.keys.sealer.clone());
        let env = Env::new(story.engine.clone()).with_signers(signers).with_webhooks(sender);
        let workers = Workers::start(&story.engine, Arc::new(env), workflows::registry());
        Office { story, http, workers }
    }

    pub async fn webhook(&self, url: &str, event_types: Value) -> Value {
        let body = json!({ "url": url, "event_types": event_types });
        self.http.post(&project("/webhooks"), body).await.with(201)
    }

    pub async fn shown(&self, id: &str) -> Value {
        self.http.get(&project(&format!("/webhooks/{id}"))).await.with(200)
    }

    pub async fn deliveries(&self, id: &str) -> Vec<Value> {
        let page = self.http.get(&project(&format!("/webhooks/{id}/deliveries"))).await.with(200);
        page["items"].as_array().unwrap().clone()
    }

    pub async fn clean_up(&self) {
        let options = Start { correlation_id: "c-clock".into(), ..Start::default() };
        let run = self.story.start_workflow(&CleanUp {}, options).await.expect("a start");
        assert_eq!(
            self.story.ends(run.id).await,
            RunState::Succeeded,
            "{}",
            self.story.describe(run.id).await
        );
    }

    pub async fn tell(&self, subject: &str) {
        super::super::tell(&self.story.pool, subject).await;
    }

    pub async fn number(&self) {
        number_all(self.story.engine.pool()).await.unwrap();
    }

    /// Sends what is due until nothing is.
    pub async fn deliver(&self) {
        self.begin().await;
        self.story.quiet().await;
    }

    /// Begins to send what is due.
    pub async fn begin(&self) {
        self.number().await;
        dispatch(&self.story.engine).await.unwrap();
    }

    pub async fn close(self) {
        self.workers.stop().await;
        self.story.end().await;
    }
}

/// One that does not wait as long as the real one.
pub fn sender() -> WebhookSender {
    WebhookSender::new(Duration::from_millis(500)).unwrap()
}

#[derive(Clone, Copy, Debug)]
pub enum Reply {
    Status(u16),
    Redirect(&'static str),
    /// No answer at all.
    Silence,
    /// Taken, after this time.
    Late(Duration),
    /// This status, once it may answer.
    WhenReleased(u16),
}

#[derive(Clone, Debug)]
pub struct Letter {
    pub headers: HeaderMap,
    pub body: Bytes,
    pub event: Value,
}

impl Letter {
    pub fn signatures(&self) -> Vec<String> {
        let header = self.headers["webhook-signature"].to_str().unwrap();
        header.split(' ').map(str::to_owned).collect()
    }

    /// What a receiver computes, by the standard's own library.
    pub fn signed_with(&self, secret: &str) -> String {
        let header = |name: &str| self.headers[name].to_str().unwrap();
        let at = header("webhook-timestamp").parse().unwrap();
        Webhook::new(secret).unwrap().sign(header("webhook-id"), at, &self.body).unwrap()
    }

    /// Whether that library takes it, as receivers do: signature, id and a time that is not long ago.
    pub fn is_believed(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(&self.body, &self.headers).is_ok()
    }
}

#[derive(Default)]
struct Held {
    got: Mutex<Vec<Letter>>,
    next: Mutex<VecDeque<Reply>>,
    otherwise: Mutex<Option<Reply>>,
    connections: AtomicU32,
    /// Letters that are answered late: how many now, and at most.
    at_once: AtomicU32,
    most_at_once: AtomicU32,
    /// A letter came that is not answered before it is released.
    arrived: Notify,
    released: Notify,
}

pub struct Receiver {
    port: u16,
    held: Arc<Held>,
}

impl Receiver {
    pub async fn open() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let held = Arc::<Held>::default();
        let router = Router::new().fallback(take).with_state(Arc::clone(&held));
        tokio::spawn(axum::serve(Counting(listener, Arc::clone(&held)), router).into_future());
        Receiver { port, held }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// Once.
    pub fn will(&self, reply: Reply) {
        self.held.next.lock().unwrap().push_back(reply);
    }

    pub fn always(&self, reply: Reply) {
        *self.held.otherwise.lock().unwrap() = Some(reply);
    }

    pub fn got(&self) -> Vec<Letter> {
        self.held.got.lock().unwrap().clone()
    }

    /// What the events it got were about, in their order.
    pub fn subjects(&self) -> Vec<Value> {
        self.got().into_iter().map(|letter| letter.event["subject"].clone()).collect()
    }

    /// Until it has a letter in hand that it does not answer yet.
    pub async fn has_one_in_hand(&self) {
        let arrived = self.held.arrived.notified();
        tokio::time::timeout(Duration::from_secs(30), arrived).await.expect("a letter");
    }

    pub fn release(&self) {
        self.held.released.notify_one();
    }

    /// How many letters it had in hand at the same time, of those that it answered late.
    pub fn most_at_once(&self) -> u32 {
        self.held.most_at_once.load(Ordering::Relaxed)
    }

    pub fn connections(&self) -> u32 {
        self.held.connections.load(Ordering::Relaxed)
    }
}

async fn take(State(held): State<Arc<Held>>, headers: HeaderMap, body: Bytes) -> Response {
    let event = serde_json::from_slice(&body).unwrap();
    held.got.lock().unwrap().push(Letter { headers, body, event });
    let next = held.next.lock().unwrap().pop_front();
    let otherwise = *held.otherwise.lock().unwrap();
    match next.or(otherwise) {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(Reply::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Reply::Redirect(to)) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Some(Reply::Silence) => std::future::pending().await,
        Some(Reply::Late(time)) => {
            let now = held.at_once.fetch_add(1, Ordering::Relaxed) + 1;
            held.most_at_once.fetch_max(now, Ordering::Relaxed);
            tokio::time::sleep(time).await;
            held.at_once.fetch_sub(1, Ordering::Relaxed);
            StatusCode::NO_CONTENT.into_response()
        }
        Some(Reply::WhenReleased(status)) => {
            held.arrived.notify_one();
            held.released.notified().await;
            StatusCode::from_u16(status).unwrap().into_response()
        }
    }
}

/// Counts who connects, whatever they say then.
struct Counting(TcpListener, Arc<Held>);

impl Listener for Counting {
    type Io = TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (TcpStream, std::net::SocketAddr) {
        let accepted = Listener::accept(&mut self.0).await;
        self.1.connections.fetch_add(1, Ordering::Relaxed);
        accepted
    }

    fn local_addr(&self) -> std::io::Result<std::net::SocketAddr> {
        self.0.local_addr()
    }
}
