//! Speaking to the platform: one place that knows its address, brings the token, and turns refusals into failures with
//! the right exit code. A token that has expired is renewed once, where the issuer gave the means to, and what was lost on
//! the way is asked for again.

mod again;

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use api_types::{ErrorEnvelope, Page};
use domain::{ErrorCode, Secret};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use self::again::Missed;
use super::ClientArgs;
use super::login::oauth;
use super::output;
use super::pick;
use super::profile::{Profiles, check_name};
use super::session::Session;
use crate::config::Surroundings;
use crate::failure::Failure;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longer than the longest `?wait=`. Streams are read for as long as they last.
const ANSWER_LIMIT: Duration = Duration::from_secs(90);
/// Where the platform reads all of a large file before it answers.
const READING_LIMIT: Duration = Duration::from_secs(3600);
/// How many items a page of a list has, and how many pages of one are read.
const PAGE: usize = 200;
const PAGES: usize = 25;

pub struct Client {
    http: reqwest::Client,
    url: String,
    project: Option<String>,
    profile: String,
    surroundings: Surroundings,
    /// None where the token came from the environment: then it is not ours to renew.
    session: Mutex<Option<Session>>,
    token: Option<Secret<String>>,
    no_input: bool,
}

impl Client {
    pub fn open(args: &ClientArgs, surroundings: &Surroundings) -> Result<Client, Failure> {
        let profiles = Profiles::read(surroundings)?;
        let name = profiles.name(args.profile.as_deref(), surroundings);
        check_name(&name)?;
        let profile = profiles.get(&name)?;
        let given = args.url.clone().or_else(|| surroundings.url.clone());
        let url = given.unwrap_or_else(|| profile.url().to_owned()).trim_end_matches('/').to_owned();
        let project = args.project.clone().or_else(|| surroundings.project.clone()).or(profile.project);
        let token = surroundings.token.clone().map(Secret::new);
        let session = if token.is_some() { None } else { Session::read(surroundings, &name)? };
        Ok(Client {
            http: http()?,
            url,
            project,
            profile: name,
            surroundings: surroundings.clone(),
            session: Mutex::new(session),
            token,
            no_input: args.no_input,
        })
    }

    /// A route of the project that was named by flag, environment or profile.
    pub fn in_project(&self, path: &str) -> Result<String, Failure> {
        Ok(format!("/api/v1/projects/{}{path}", self.project()?))
    }

    pub fn project(&self) -> Result<&str, Failure> {
        self.project.as_deref().ok_or_else(|| {
            Failure::usage("which project? Name it with --project PROJECT, GPUAAS_PROJECT, or `gpuaas config set --project PROJECT`")
        })
    }

    /// Gives a project that was named by its slug, or by the beginning of its id, the id that routes have.
    pub async fn find_project(&mut self) -> Result<(), Failure> {
        if let Some(named) = self.project.clone().filter(|named| named.parse::<Uuid>().is_err()) {
            self.project = Some(pick::project(self, &named).await?.to_string());
        }
        Ok(())
    }

    /// Whether the platform is on this very machine.
    pub fn is_here(&self) -> bool {
        let url = url::Url::parse(&self.url).ok();
        url.as_ref().and_then(url::Url::host_str).is_some_and(is_loopback)
    }

    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// Whether somebody sits there who can be asked.
    pub fn may_ask(&self) -> bool {
        !self.no_input && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Whether talk may have colours.
    pub fn may_paint(&self) -> bool {
        !self.surroundings.no_color && io::stderr().is_terminal()
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, Failure> {
        self.get_within(ANSWER_LIMIT, path, query).await
    }

    /// An answer that may be long.
    pub async fn get_within<T: DeserializeOwned>(
        &self,
        limit: Duration,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        let heard = self.ask(&again::QUESTION, |http| {
            http.request(Method::GET, self.at(path)).query(query).timeout(limit)
        });
        match heard.await {
            Ok(heard) => understood(&heard.bytes),
            Err((missed, _)) => Err(missed.failure),
        }
    }

    /// All of a list, page by page, as long as it is not endless. What is beyond that is said to be there.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Vec<T>, Failure> {
        let (all, is_whole) = self.first(path, query, PAGES * PAGE).await?;
        if !is_whole {
            output::say(&format!("there are more than these {}", all.len()));
        }
        Ok(all)
    }

    /// At most so many of a list, page by page, and whether that is all of it.
    pub async fn first<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        most: usize,
    ) -> Result<(Vec<T>, bool), Failure> {
        let mut all = Vec::new();
        let mut cursor = None;
        while all.len() < most {
            let mut query = query.to_vec();
            query.push(("limit", PAGE.min(most - all.len()).to_string()));
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page: Page<T> = self.get(path, &query).await?;
            all.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    /// A change. Its key makes it safe to ask for again where the answer was lost on the way.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, sent: &impl Serialize) -> Result<T, Failure> {
        self.change(Method::POST, path, sent, ANSWER_LIMIT).await
    }

    /// A change before which the platform reads what it is about, however large that is.
    pub async fn post_unhurried<T: DeserializeOwned>(
        &self,
        path: &str,
        sent: &impl Serialize,
    ) -> Result<T, Failure> {
        self.change(Method::POST, path, sent, READING_LIMIT).await
    }

    pub async fn put<T: DeserializeOwned>(&self, path: &str, sent: &impl Serialize) -> Result<T, Failure> {
        self.change(Method::PUT, path, sent, ANSWER_LIMIT).await
    }

    /// A change that was put together before.
    pub async fn act(&self, method: Method, path: &str, sent: &Value) -> Result<Value, Failure> {
        self.change(method, path, sent, ANSWER_LIMIT).await
    }

    async fn change<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        sent: &impl Serialize,
        limit: Duration,
    ) -> Result<T, Failure> {
        let key = Uuid::new_v4().to_string();
        let heard = self.ask(&again::CHANGE, |http| {
            let request = http.request(method.clone(), self.at(path)).timeout(limit);
            request.header("x-idempotency-key", &key).json(sent)
        });
        match heard.await {
            Ok(heard) => understood(&heard.with_its_secret()?.bytes),
            Err((missed, was_lost)) => Err(missed.of_change(was_lost)),
        }
    }

    /// An answer that goes on, such as a stream of events.
    pub async fn open_stream(&self, path: &str, last_event_id: Option<&str>) -> Result<Response, Failure> {
        let stream = self.send(|http| {
            let request = http.request(Method::GET, self.at(path)).header("accept", "text/event-stream");
            match last_event_id {
                Some(id) => request.header("last-event-id", id),
                None => request,
            }
        });
        stream.await.map_err(|missed| missed.failure)
    }

    /// A path of the platform's, or an address elsewhere that the platform told.
    pub fn address(&self, told: &str) -> String {
        if told.starts_with('/') { self.at(told) } else { told.to_owned() }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn send(&self, request: impl Fn(&reqwest::Client) -> RequestBuilder) -> Result<Response, Missed> {
        let token = self.token()?;
        match self.sent(request(&self.http), &token).await {
            Err(missed) if expired(&missed.failure) => match self.renewed().await? {
                Some(token) => self.sent(request(&self.http), &token).await,
                None => Err(missed),
            },
            outcome => outcome,
        }
    }

    async fn sent(&self, request: RequestBuilder, token: &Secret<String>) -> Result<Response, Missed> {
        let answer = request.bearer_auth(token.expose()).send().await;
        let answer = answer.map_err(|error| Missed::on_the_way(&self.url, &error))?;
        if answer.status().is_success() { Ok(answer) } else { Err(Missed::refused(answer).await) }
    }

    fn token(&self) -> Result<Secret<String>, Failure> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = session.as_ref().map(|session| session.access_token.clone());
        self.token.clone().or(kept).ok_or_else(|| {
            Failure::auth(format!(
                "profile {} is not signed in: run `gpuaas login`, or set GPUAAS_TOKEN",
                self.profile
            ))
        })
    }

    /// A new token, if the issuer gave something to get one by.
    async fn renewed(&self) -> Result<Option<Secret<String>>, Failure> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((session, refresh)) =
            session.and_then(|s| s.refresh_token.clone().map(|refresh| (s, refresh)))
        else {
            return Ok(None);
        };
        let session = oauth::refresh(&self.http, session, &refresh).await?;
        session.write(&self.surroundings, &self.profile)?;
        let token = session.access_token.clone();
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
        Ok(Some(token))
    }
}

/// Words of a person as one part of a path: they must not change where it leads.
pub fn escaped(words: &str) -> String {
    url::form_urlencoded::byte_serialize(words.as_bytes()).collect::<String>().replace('+', "%20")
}

/// Whether this name or number of a host can only be this machine's.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The client under all others. It follows no redirects: a token must not travel where nobody meant it to.
pub fn http() -> Result<reqwest::Client, Failure> {
    // An error says that a provider is installed already: there is only one we compile.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(concat!("gpuaas/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(Failure::server)
}

pub fn unreachable(url: &str, error: &reqwest::Error) -> Failure {
    let why = match error {
        _ if error.is_timeout() => "it did not answer in time",
        _ if error.is_request() && !error.is_connect() => "the connection broke off",
        _ => "it cannot be reached",
    };
    Failure::server(format!("{url}: {why}; is the address right? (--url, GPUAAS_BASE_URL or the profile)"))
}

fn expired(failure: &Failure) -> bool {
    failure.answer.as_ref().is_some_and(|answer| answer.code == ErrorCode::TokenExpired)
}

/// A proxy or another server may have answered in the platform's place, and in other words.
pub fn refusal(status: StatusCode, text: &str) -> Failure {
    match serde_json::from_str::<ErrorEnvelope>(text) {
        Ok(envelope) => Failure::refused(envelope),
        Err(_) => {
            Failure::server(format!("the answer {status} is not the platform's: is the address right?"))
        }
    }
}

fn understood<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let bytes: &[u8] = if bytes.is_empty() { b"null" } else { bytes };
    serde_json::from_slice(bytes).map_err(|error| {
        Failure::server(format!(
            "the answer is not understood: {error}; this command may be older than the platform"
        ))
    })
}
