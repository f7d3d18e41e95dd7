//! What is told reaches NATS once and in order, whoever dies meanwhile. The server is Debian's own.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use activities::{EventStream, NatsSettings};
use async_nats::jetstream::{self, stream::Config};
use clients::nats::NatsFault;
use domain::EventType;
use domain::event::{CloudEvent, NewEvent};
use serde_json::json;
use sqlx::PgPool;
use store::outbox::{self, Filter};
use uuid::Uuid;
use workflows::relay::Relay;
use workflows::sequencer::{Hints, Sequencer, number_all};

use super::tell_newer;
use crate::support::cluster::Folder;
use crate::support::realm::DEMO;
use crate::support::slow::short_or_slow;
use crate::support::story::Story;

const PROJECTS: [Uuid; 3] = [Uuid::from_u128(1), Uuid::from_u128(2), Uuid::nil()];

/// It is killed with the test; what it stored stays until then.
struct Server {
    folder: Folder,
    port: u16,
    process: Child,
}

impl Server {
    async fn start() -> Server {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = Folder::new();
        let process = run(&folder, port);
        let server = Server { folder, port, process };
        server.answers().await;
        server
    }

    async fn answers(&self) {
        let asked = async {
            while async_nats::connect(self.url()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), asked).await.expect("nats-server answers");
    }

    async fn dies_and_returns(&mut self) {
        self.dies();
        self.returns().await;
    }

    async fn loses_everything(&mut self) {
        self.dies();
        std::fs::remove_dir_all(&self.folder.0).unwrap();
        std::fs::create_dir(&self.folder.0).unwrap();
        self.returns().await;
    }

    fn dies(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    async fn returns(&mut self) {
        self.process = run(&self.folder, self.port);
        self.answers().await;
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn settings(&self) -> NatsSettings {
        NatsSettings {
            servers: vec![self.url().parse().unwrap()],
            token: None,
            stream: "events".into(),
            subject: "told".into(),
        }
    }

    /// One that knows repetitions for as short as a stream may.
    async fn makes_a_forgetful_stream(&self) {
        let config = Config {
            name: "events".into(),
            subjects: vec!["told.>".into()],
            duplicate_window: Duration::from_millis(100),
            ..Config::default()
        };
        let client = async_nats::connect(self.url()).await.unwrap();
        jetstream::new(client).create_stream(config).await.unwrap();
    }

    /// Until the stream no longer knows the id of an event that it has: it then refuses it by its place, and keeps it once.
    async fn forgets(&self, project: Uuid, event: &CloudEvent) {
        let stream = EventStream::open(&self.settings()).await.unwrap();
        let known = async {
            while stream.send(project, event, 0).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), known).await.expect("the id is forgotten");
        assert!(matches!(stream.send(project, event, 0).await, Err(NatsFault::Overtaken)));
    }

    /// Everything that the stream holds: subject, `Nats-Msg-Id` and the event.
    async fn holds(&self) -> Vec<(String, String, CloudEvent)> {
        let client = async_nats::connect(self.url()).await.unwrap();
        let mut stream = jetstream::new(client).get_stream("events").await.unwrap();
        let last = stream.info().await.unwrap().state.last_sequence;
        let mut all = Vec::new();
        for number in 1..=last {
            let message = stream.get_raw_message(number).await.unwrap();
            let id = message.headers.get("Nats-Msg-Id").unwrap().to_string();
            all.push((message.subject.to_string(), id, serde_json::from_slice(&message.payload).unwrap()));
        }
        all
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(folder: &Folder, port: u16) -> Child {
    let mut command = Command::new("/usr/sbin/nats-server");
    command.args(["--jetstream", "--addr", "127.0.0.1", "--port", &port.to_string(), "--store_dir"]);
    command.arg(&folder.0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("Debian's nats-server")
}

async fn tell(pool: &PgPool, project: Uuid, subject: &str) {
    let kind = EventType::VersionStaged;
    let event = match project.is_nil() {
        true => NewEvent::of_platform(kind, subject, &json!({}), "c-nats"),
        false => NewEvent::of_project((DEMO, project), kind, subject, &json!({}), "c-nats"),
    };
    outbox::insert(&mut pool.acquire().await.unwrap(), &event).await.unwrap();
}

/// What a project was told, in order.
async fn told(pool: &PgPool, project_id: Uuid) -> Vec<CloudEvent> {
    let filter = Filter { project_id, limit: 100_000, ..Filter::default() };
    outbox::told(&mut pool.acquire().await.unwrap(), &filter).await.unwrap()
}

async fn everything_arrived(story: &Story, server: &Server) {
    story
        .until_true(
            "everything was passed on",
            "select not exists (select 1 from outbox where seq is null) and $1::uuid is not null and $2::text[] is not null
             and not exists (select 1 from event_counters c left join event_relays r on r.project_id = c.project_id
                             where c.last_seq > coalesce(r.position, 0))",
            Uuid::nil(),
            &[],
        )
        .await;
    let mut by_subject: BTreeMap<String, Vec<CloudEvent>> = BTreeMap::new();
    for (subject, id, event) in server.holds().await {
        assert_eq!(id, event.id.to_string());
        by_subject.entry(subject).or_default().push(event);
    }
    for project in PROJECTS {
        let subject = if project.is_nil() { "told.platform".into() } else { format!("told.{project}") };
        let (sent, told) =
            (by_subject.remove(&subject).unwrap_or_default(), told(&story.pool, project).await);
        let numbers = |events: &[CloudEvent]| events.iter().map(CloudEvent::seq).collect::<Vec<_>>();
        assert_eq!(numbers(&sent), numbers(&told), "{subject}");
        assert_eq!(sent, told);
    }
    assert!(by_subject.is_empty(), "{:?}", by_subject.keys());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_arrives_once_and_in_order_whoever_dies() {
    let story = Story::new().await;
    let mut server = Server::start().await;
    let hints = Hints::default();
    let sequencer = Sequencer::start(&story.engine, &hints);
    let rounds = short_or_slow(12, 120);
    let pool = story.pool.clone();
    let telling = tokio::spawn(async move {
        for n in 0..rounds * 30 {
            tell(&pool, PROJECTS[n % 3], &n.to_string()).await;
        }
    });
    for round in 0..rounds {
        // Two at once, as two processes would, and both are cut off wherever they are.
        let relays = [0, 1].map(|_| Relay::start(&story.engine, &hints, server.settings()));
        tokio::time::sleep(Duration::from_millis(rand::random_range(1..120))).await;
        if round % 3 == 1 {
            server.dies_and_returns().await;
        }
        drop(relays);
    }
    telling.await.unwrap();
    let relay = Relay::start(&story.engine, &hints, server.settings());
    everything_arrived(&story, &server).await;
    assert!(hints.relays()[0] > 0);
    relay.stop().await;
    sequencer.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_only_a_newer_release_knows_is_passed_on_and_those_after_it() {
    let story = Story::new().await;
    let server = Server::start().await;
    for project in PROJECTS {
        tell_newer(&story.pool, project, "dreamt").await;
        tell(&story.pool, project, "after").await;
    }
    number_all(story.engine.pool()).await.unwrap();
    // The second reads what the first left in the stream.
    for _ in 0..2 {
        let relay = Relay::start(&story.engine, &Hints::default(), server.settings());
        everything_arrived(&story, &server).await;
        relay.stop().await;
        tell(&story.pool, PROJECTS[0], "later").await;
        number_all(story.engine.pool()).await.unwrap();
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_message_holds_up_the_project_it_is_under_and_no_other() {
    let story = Story::new().await;
    let server = Server::start().await;
    EventStream::open(&server.settings()).await.unwrap();
    let stranger = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let under = format!("told.{}", PROJECTS[0]);
    stranger.publish(under, "no event".into()).await.unwrap().await.unwrap();
    for project in PROJECTS {
        tell(&story.pool, project, "first").await;
    }
    number_all(story.engine.pool()).await.unwrap();
    let hints = Hints::default();
    let relay = Relay::start(&story.engine, &hints, server.settings());
    story
        .until_true(
            "the others were passed on",
            "select count(*) = 2 and $2::text[] is not null from event_relays where position = 1 and project_id <> $1",
            PROJECTS[0],
            &[],
        )
        .await;
    relay.stop().await;
    assert!(hints.relays()[1] > 0, "and it is counted");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_platform_forgot_to_note_is_not_sent_again() {
    let story = Story::new().await;
    let server = Server::start().await;
    server.makes_a_forgetful_stream().await;
    for project in PROJECTS {
        tell(&story.pool, project, "first").await;
    }
    number_all(story.engine.pool()).await.unwrap();
    let hints = Hints::default();
    let relay = Relay::start(&story.engine, &hints, server.settings());
    everything_arrived(&story, &server).await;
    relay.stop().await;
    // As if every process had died between the stream's answer and the row, long ago: the stream has forgotten the ids.
    sqlx::query("update event_relays set position = 0").execute(&story.pool).await.unwrap();
    for project in PROJECTS {
        server.forgets(project, &told(&story.pool, project).await[0]).await;
    }
    tell(&story.pool, PROJECTS[0], "second").await;
    number_all(story.engine.pool()).await.unwrap();
    let relay = Relay::start(&story.engine, &hints, server.settings());
    everything_arrived(&story, &server).await;
    relay.stop().await;
    story.end().await;
}

/// Those who listen may not have had what was lost: all that is kept is there again, also of projects that tell nothing new.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_lost_is_made_again_with_everything_that_is_kept() {
    let story = Story::new().await;
    let mut server = Server::start().await;
    for project in PROJECTS {
        tell(&story.pool, project, "first").await;
    }
    number_all(story.engine.pool()).await.unwrap();
    let hints = Hints::default();
    let relay = Relay::start(&story.engine, &hints, server.settings());
    everything_arrived(&story, &server).await;
    for lost in ["the stream", "all that the server had"] {
        let before: String = sqlx::query_scalar("select min(stream_made)::text from event_relays")
            .fetch_one(&story.pool)
            .await
            .unwrap();
        if lost == "the stream" {
            let client = async_nats::connect(server.url()).await.unwrap();
            jetstream::new(client).delete_stream("events").await.unwrap();
        } else {
            server.loses_everything().await;
        }
        tell(&story.pool, PROJECTS[0], lost).await;
        number_all(story.engine.pool()).await.unwrap();
        story
            .until_true(
                "another stream has everything",
                "select bool_and(r.stream_made::text <> all($2) and r.position = c.last_seq) and $1::uuid is not null
                 from event_counters c left join event_relays r on r.project_id = c.project_id",
                Uuid::nil(),
                &[before.as_str()],
            )
            .await;
        everything_arrived(&story, &server).await;
    }
    relay.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_after_others_of_its_project_is_refused() {
    let story = Story::new().await;
    let server = Server::start().await;
    let project = PROJECTS[0];
    for subject in ["one", "two", "three"] {
        tell(&story.pool, project, subject).await;
    }
    number_all(story.engine.pool()).await.unwrap();
    let events = told(&story.pool, project).await;
    let stream = EventStream::open(&server.settings()).await.unwrap();
    let first = stream.send(project, &events[0], 0).await.unwrap();
    assert_eq!(stream.send(project, &events[0], 0).await.unwrap(), first, "a repetition is known by its id");
    let second = stream.send(project, &events[1], first).await.unwrap();
    // Whoever slept believes that the first is still the last.
    assert!(matches!(stream.send(project, &events[2], first).await, Err(NatsFault::Overtaken)));
    let place = stream.last(project).await.unwrap();
    assert_eq!((place.event, place.message), (2, second));
    assert_eq!(stream.last(PROJECTS[1]).await.unwrap().message, 0);
    assert_eq!(server.holds().await.len(), 2);
    story.end().await;
}
