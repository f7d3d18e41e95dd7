//! The configuration: the only place that reads the environment and configuration files. One struct per concern;
//! a wrong key or value ends the start with the place it stands at and what would be right.

mod address;
mod artifact_store;
mod auth;
mod bounds;
mod nats;
mod registry;
mod surroundings;
mod values;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use activities::NatsSettings;
use sqlx::postgres::PgConnectOptions;
use tracing_subscriber::filter::Targets;

pub use artifact_store::ArtifactStore;
pub use auth::Auth;
pub use registry::{Registry, Vault};
pub use surroundings::Surroundings;
pub use values::{ConfigError, Values, default_file, variable_name};

/// What the command line says about the configuration.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub file: Option<PathBuf>,
    /// `(flag as written, key, value)`, in order.
    pub flags: Vec<(String, String, String)>,
}

#[derive(Debug, Clone)]
pub struct Config {
    pub server: Server,
    pub auth: Auth,
    pub registry: Option<Registry>,
    pub vault: Option<Vault>,
    pub artifact_store: Option<ArtifactStore>,
    /// Where events are passed on to.
    pub nats: Option<NatsSettings>,
    pub database: Database,
    pub engine: engine::Settings,
    pub log: Log,
    pub telemetry: Telemetry,
    pub values: Values,
}

#[derive(Debug, Clone)]
pub struct Server {
    pub listen: SocketAddr,
    pub receive_within: Duration,
    /// How long a stopping process still takes requests, while it says that it is not ready.
    pub notice: Duration,
    /// Where a process without an API says how it is.
    pub probes: Option<SocketAddr>,
    pub anonymous_per_minute: u32,
    pub proxies: usize,
}

#[derive(Debug, Clone)]
pub struct Database {
    pub url: Option<PgConnectOptions>,
    pub migrate_url: Option<PgConnectOptions>,
    pub app_role: String,
    pooler: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone)]
pub struct Log {
    pub format: LogFormat,
    pub filter: Targets,
    pub color: bool,
}

#[derive(Debug, Clone)]
pub struct Telemetry {
    pub otlp_endpoint: Option<String>,
    pub service_name: String,
}

impl Config {
    /// Reads the process's environment and the configuration file it or the command line names.
    pub fn load(overrides: &Overrides) -> Result<Config, ConfigError> {
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let file = match &overrides.file {
            Some(named) => Some(named.clone()),
            None => file_to_read(environment.get("GPUAAS_CONFIG")),
        };
        let contents =
            file.map(|path| read(&path, "configuration file").map(|contents| (path, contents))).transpose();
        let contents = contents.map_err(|problem| ConfigError(vec![problem]))?;
        Config::from_layers(contents, &environment, &overrides.flags)
    }

    fn from_layers(
        file: Option<(PathBuf, String)>,
        environment: &BTreeMap<String, String>,
        flags: &[(String, String, String)],
    ) -> Result<Config, ConfigError> {
        let mut values = Values::defaults()?;
        let mut problems = Vec::new();
        if let Some((path, contents)) = &file {
            problems.extend(values.overlay_file(path, contents));
        }
        problems.extend(values.overlay_environment(environment));
        for (flag, key, text) in flags {
            problems.extend(values.overlay_flag(flag, key, text));
        }
        if !problems.is_empty() {
            return Err(ConfigError(problems));
        }
        bounds::check(&values)?;
        Ok(Config {
            server: Server {
                listen: values.parse("server.listen")?,
                receive_within: milliseconds(&values, "server.receive_ms")?,
                notice: milliseconds(&values, "server.notice_ms")?,
                probes: socket(&values, "server.probes_listen")?,
                anonymous_per_minute: values.parse("server.anonymous_per_minute")?,
                proxies: values.parse("server.proxies")?,
            },
            auth: Auth::load(&values)?,
            registry: Registry::load(&values)?,
            vault: Vault::load(&values)?,
            artifact_store: ArtifactStore::load(&values)?,
            nats: nats::load(&values)?,
            database: Database::read(&values)?,
            engine: engine_settings(&values)?,
            log: Log::read(&values, environment)?,
            telemetry: Telemetry::read(&values)?,
            values,
        })
    }
}

impl Database {
    fn read(values: &Values) -> Result<Database, ConfigError> {
        Ok(Database {
            url: connection(values, "database.url")?,
            migrate_url: connection(values, "database.migrate_url")?,
            app_role: values.text("database.app_role")?,
            pooler: values.parse("database.pooler")?,
        })
    }

    /// Where the application role connects, or how to say it.
    pub fn required(&self) -> Result<PgConnectOptions, ConfigError> {
        let Some(options) = self.url.clone() else {
            return Err(ConfigError(vec![format!(
                "no database: set `database.url` in the configuration file, {}, or --database-url",
                variable_name("database.url")
            )]));
        };
        // A statement that one session behind the pooler has prepared is unknown to the next.
        Ok(if self.pooler { options.statement_cache_capacity(0) } else { options })
    }
}

impl Log {
    fn read(values: &Values, environment: &BTreeMap<String, String>) -> Result<Log, ConfigError> {
        let terminal = io::stderr().is_terminal();
        let format = match values.text("log.format")?.as_str() {
            "json" => LogFormat::Json,
            "text" => LogFormat::Text,
            "auto" if terminal => LogFormat::Text,
            "auto" => LogFormat::Json,
            _ => return Err(values.wrong("log.format", &"must be auto, json or text")),
        };
        let filter = values.text("log.filter")?;
        let filter = Targets::from_str(&filter).map_err(|error| values.wrong("log.filter", &error))?;
        let color = terminal && environment.get("NO_COLOR").is_none_or(String::is_empty);
        Ok(Log { format, filter, color })
    }
}

impl Telemetry {
    fn read(values: &Values) -> Result<Telemetry, ConfigError> {
        let otlp_endpoint = values.optional("telemetry.otlp_endpoint")?;
        let is_http = |address: &String| address.starts_with("http://") || address.starts_with("https://");
        if otlp_endpoint.as_ref().is_some_and(|address| !is_http(address)) {
            return Err(values.wrong("telemetry.otlp_endpoint", &"must begin with http:// or https://"));
        }
        Ok(Telemetry { otlp_endpoint, service_name: values.text("telemetry.service_name")? })
    }
}

/// Every number of the engine but those that follow from others.
fn engine_settings(values: &Values) -> Result<engine::Settings, ConfigError> {
    let kib = |key| Ok::<_, ConfigError>(values.parse::<usize>(key)? << 10);
    let days = |key| Ok::<_, ConfigError>(Duration::from_secs(values.parse::<u64>(key)? * 24 * 3600));
    let lease = milliseconds(values, "engine.lease_ms")?;
    Ok(engine::Settings {
        slots: values.parse("engine.slots")?,
        lease,
        // Two renewals may be lost before the lease is.
        renew_every: lease / 3,
        poll_every: milliseconds(values, "engine.poll_ms")?,
        drain: milliseconds(values, "engine.drain_ms")?,
        project_cap: values.parse("engine.project_cap")?,
        project_backlog: values.parse("engine.project_backlog")?,
        batch: values.parse("engine.batch")?,
        lanes: values.parse("engine.lanes")?,
        lane_rows: values.parse("engine.lane_rows")?,
        lane_bytes: kib("engine.lane_kib")?,
        lane_queue: values.parse("engine.lane_queue")?,
        pressure_after: milliseconds(values, "engine.pressure_ms")?,
        lost_step_grace: milliseconds(values, "engine.lost_step_grace_ms")?,
        max_claims: values.parse("engine.max_claims")?,
        inline_retry: milliseconds(values, "engine.inline_retry_ms")?,
        slow_retry: milliseconds(values, "engine.slow_retry_ms")?,
        force_after: milliseconds(values, "engine.force_after_ms")?,
        max_input: kib("engine.max_input_kib")?,
        max_signal: kib("engine.max_signal_kib")?,
        max_error: kib("engine.max_error_kib")?,
        max_depth: values.parse("engine.max_depth")?,
        max_journal_rows: values.parse("engine.max_journal_rows")?,
        keep_runs: days("engine.keep_runs_days")?,
        keep_attempt_days: values.parse("engine.keep_attempt_days")?,
        api_connections: values.parse("database.api_connections")?,
        drive_connections: values.parse("database.drive_connections")?,
        statement_timeout: milliseconds(values, "database.statement_timeout_ms")?,
        lock_timeout: milliseconds(values, "database.lock_timeout_ms")?,
        idle_in_transaction: milliseconds(values, "database.idle_in_transaction_ms")?,
        pooler: values.parse("database.pooler")?,
        ..engine::Settings::default()
    })
}

fn milliseconds(values: &Values, key: &str) -> Result<Duration, ConfigError> {
    Ok(Duration::from_millis(values.parse(key)?))
}

fn socket(values: &Values, key: &str) -> Result<Option<SocketAddr>, ConfigError> {
    match values.optional(key)? {
        Some(_) => values.parse(key).map(Some),
        None => Ok(None),
    }
}

fn connection(values: &Values, key: &str) -> Result<Option<PgConnectOptions>, ConfigError> {
    let Some(url) = values.optional(key)? else { return Ok(None) };
    match PgConnectOptions::from_str(&url) {
        Ok(options) => Ok(Some(options.application_name("gpuaas"))),
        Err(error) => Err(values.wrong(key, &error)),
    }
}

fn file_to_read(named: Option<&String>) -> Option<PathBuf> {
    let usual = ["gpuaas.toml", "/etc/gpuaas/gpuaas.toml"].into_iter().map(PathBuf::from);
    // An empty variable is as good as none.
    let named = named.filter(|path| !path.is_empty());
    named.map(PathBuf::from).or_else(|| usual.into_iter().find(|path| path.exists()))
}

fn read(path: &Path, what: &str) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn load(
        file: &str,
        environment: &[(&str, &str)],
        flags: &[(&str, &str)],
    ) -> Result<Config, ConfigError> {
        let file = (!file.is_empty()).then(|| (PathBuf::from("gpuaas.toml"), file.to_owned()));
        let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let flags: Vec<_> =
            flags.iter().map(|(key, value)| ("--set".into(), (*key).into(), (*value).into())).collect();
        Config::from_layers(file, &environment, &flags)
    }

    fn origin(config: &Config, key: &str) -> String {
        config.values.iter().find(|(name, _)| *name == key).map(|(_, one)| one.origin.to_string()).unwrap()
    }

    #[test]
    fn the_default_file_is_valid_and_says_what_the_engine_runs_by() {
        let config = load("", &[], &[]).unwrap();
        assert_eq!(format!("{:?}", config.engine), format!("{:?}", engine::Settings::default()));
        assert!(config.database.url.is_none());
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    }

    #[test]
    fn a_later_layer_wins_and_is_named() {
        let file = "[engine]\nslots = 2\nproject_cap = 7\n";
        let environment = [("GPUAAS_ENGINE_SLOTS", "3"), ("GPUAAS_DATABASE_POOLER", "true")];
        let config = load(file, &environment, &[("engine.project_cap", "9")]).unwrap();
        assert_eq!((config.engine.slots, config.engine.project_cap, config.engine.pooler), (3, 9, true));
        assert_eq!(origin(&config, "engine.slots"), "environment GPUAAS_ENGINE_SLOTS");
        assert_eq!(origin(&config, "engine.project_cap"), "flag --set");
        assert_eq!(origin(&config, "log.filter"), "default");
        let from_file = load(file, &[], &[]).unwrap();
        assert_eq!(origin(&from_file, "engine.project_cap"), "gpuaas.toml:3");
    }

    #[test]
    fn every_mistake_is_said_at_once_with_its_place() {
        let file = "[engine]\nslotz = 2\nlease_ms = \"long\"\n[servers]\nlisten = \"x\"\n";
        let environment = [("GPUAAS_DATABASE_POOLER", "maybe"), ("GPUAAS_ENGINE_SLOT", "1")];
        let error = load(file, &environment, &[("nothing", "1")]).unwrap_err();
        assert_eq!(error.0.len(), 6, "{error}");
        let text = error.to_string();
        assert!(text.contains("gpuaas.toml:2: no setting `engine.slotz`; [engine] has batch"), "{text}");
        assert!(text.contains("gpuaas.toml:3: `engine.lease_ms` must be a whole number"), "{text}");
        assert!(
            text.contains(
                "gpuaas.toml:5: no setting `servers.listen`; the sections are artifact_store, auth, database"
            ),
            "{text}"
        );
        assert!(text.contains("GPUAAS_DATABASE_POOLER: `database.pooler` must be true or false"), "{text}");
        assert!(text.contains("environment GPUAAS_ENGINE_SLOT: no such setting"), "{text}");
    }

    #[test]
    fn services_that_kubernetes_tells_of_are_no_settings() {
        let told = [
            ("GPUAAS_REGISTRY_SERVICE_HOST", "10.0.0.1"),
            ("GPUAAS_REGISTRY_SERVICE_PORT", "5000"),
            ("GPUAAS_REGISTRY_SERVICE_PORT_HTTP", "5000"),
            ("GPUAAS_REGISTRY_PORT", "tcp://10.0.0.1:5000"),
            ("GPUAAS_REGISTRY_PORT_5000_TCP", "tcp://10.0.0.1:5000"),
            ("GPUAAS_REGISTRY_PORT_5000_TCP_PROTO", "tcp"),
            ("GPUAAS_REGISTRY_PORT_5000_TCP_PORT", "5000"),
            ("GPUAAS_REGISTRY_PORT_5000_TCP_ADDR", "10.0.0.1"),
            ("GPUAAS_SERVER_PROBES_PORT_53_UDP_ADDR", "10.0.0.2"),
            // A setting all the same.
            ("GPUAAS_REGISTRY_SERVICE", "shelf"),
        ];
        let config = load("", &told, &[]).unwrap();
        assert_eq!(config.values.text("registry.service").unwrap(), "shelf");
        let error = load("", &[("GPUAAS_DATABASE_PORT", "5432")], &[]).unwrap_err();
        assert!(error.to_string().contains("GPUAAS_DATABASE_PORT: no such setting"), "{error}");
    }

    #[test]
    fn variables_of_other_programs_are_left_alone() {
        assert!(load("", &[("GPUAAS_BASE_URL", "x"), ("GPUAAS_TEST_DATABASE_URL", "y")], &[]).is_ok());
    }

    #[test]
    fn a_password_is_never_shown() {
        let config = load("", &[("GPUAAS_DATABASE_URL", "postgres://app:s3cret@db/gpuaas")], &[]).unwrap();
        let (key, setting) = config.values.iter().find(|(key, _)| *key == "database.url").unwrap();
        assert_eq!(setting.shown(key), "postgres://app:***@db/gpuaas");
        let error =
            load("", &[("GPUAAS_DATABASE_URL", "postgres://app:s3cret@db:notaport/x")], &[]).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
        let file = "[database]\nurl = \"postgres://app:s3cret@db/gpuaas\n";
        let error = load(file, &[], &[]).unwrap_err().to_string();
        assert!(error.contains("gpuaas.toml: line ") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn no_server_of_several_shows_its_secret() {
        let urls = "nats://a:hush@one:4222, nats://hush@two:4222";
        let config = load("", &[("GPUAAS_NATS_URL", urls)], &[]).unwrap();
        assert!(!format!("{:?}", config.values).contains("hush"), "{:?}", config.values);
        let error = load("", &[("GPUAAS_NATS_URL", "http://hush@one")], &[]).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}
