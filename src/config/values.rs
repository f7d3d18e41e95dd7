//! Settings as layers: every key with its value and where that value came from. The embedded default file names
//! all keys there are; a later layer may only override them, and whatever it gets wrong is said all at once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::address;

const DEFAULTS: &str = include_str!("default.toml");

/// Settings whose whole value is a secret.
const SECRETS: [&str; 7] = [
    "auth.signing_keys",
    "auth.sealing_keys",
    "registry.token_key",
    "registry.events_secret",
    "vault.token",
    "nats.token",
    "artifact_store.s3_secret_access_key",
];

/// Every problem found, one per line, each naming the place and what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(f, "default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Integer,
    Boolean,
}

impl Shape {
    fn of(value: &DeValue<'_>) -> Option<Shape> {
        match value {
            DeValue::String(_) => Some(Shape::Text),
            DeValue::Integer(_) => Some(Shape::Integer),
            DeValue::Boolean(_) => Some(Shape::Boolean),
            _ => None,
        }
    }

    fn accepts(self, text: &str) -> bool {
        match self {
            Shape::Text => true,
            Shape::Integer => text.parse::<i64>().is_ok(),
            Shape::Boolean => text.parse::<bool>().is_ok(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Shape::Text => "text in quotes",
            Shape::Integer => "a whole number",
            Shape::Boolean => "true or false",
        }
    }
}

#[derive(Clone)]
pub struct Setting {
    pub text: String,
    pub origin: Origin,
    shape: Shape,
}

#[derive(Clone)]
pub struct Values {
    settings: BTreeMap<String, Setting>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, setting)| (key, setting.shown(key)))).finish()
    }
}

/// One `key = value` of a file.
struct Entry {
    key: String,
    text: String,
    shape: Option<Shape>,
    line: usize,
}

impl Values {
    pub fn defaults() -> Result<Values, ConfigError> {
        let mut settings = BTreeMap::new();
        for Entry { key, text, shape, .. } in entries(DEFAULTS).map_err(|error| ConfigError(vec![error]))? {
            let shape =
                shape.ok_or_else(|| ConfigError(vec![format!("the default of `{key}` has no shape")]))?;
            settings.insert(key, Setting { text, origin: Origin::Default, shape });
        }
        Ok(Values { settings })
    }

    /// The layer of a configuration file.
    pub fn overlay_file(&mut self, path: &Path, contents: &str) -> Vec<String> {
        let found = match entries(contents) {
            Ok(found) => found,
            Err(error) => return vec![format!("{}: {error}", path.display())],
        };
        let mut problems = Vec::new();
        for Entry { key, text, shape, line } in found {
            let origin = Origin::File { path: path.to_owned(), line };
            let wanted = self.settings.get(&key).map(|setting| setting.shape);
            match wanted {
                Some(wanted) if shape != Some(wanted) => {
                    problems.push(format!("{origin}: `{key}` must be {}", wanted.words()));
                }
                _ => problems.extend(self.set(&key, text, origin)),
            }
        }
        problems
    }

    /// The layer of the environment. Variables that begin like one of our sections but name no key are mistakes, unless
    /// Kubernetes made them; other `GPUAAS_` variables belong to someone else.
    pub fn overlay_environment(&mut self, variables: &BTreeMap<String, String>) -> Vec<String> {
        let names: BTreeMap<String, String> =
            self.settings.keys().map(|key| (variable_name(key), key.clone())).collect();
        let mut problems = Vec::new();
        for (name, text) in variables {
            let origin = Origin::Environment(name.clone());
            if let Some(key) = names.get(name) {
                problems.extend(self.set(key, text.clone(), origin));
            } else if let Some(section) = self.section_of_variable(name)
                && !tells_of_a_service(name, text)
            {
                problems.push(format!("{origin}: no such setting; {}", self.keys_of(&section)));
            }
        }
        problems
    }

    /// One value from the command line. `flag` is how the user wrote it.
    pub fn overlay_flag(&mut self, flag: &str, key: &str, text: &str) -> Vec<String> {
        self.set(key, text.to_owned(), Origin::Flag(flag.to_owned())).into_iter().collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.settings.iter().map(|(key, setting)| (key.as_str(), setting))
    }

    pub fn text(&self, key: &str) -> Result<String, ConfigError> {
        self.parse(key)
    }

    /// The text, or nothing when it is empty: how optional settings are written.
    pub fn optional(&self, key: &str) -> Result<Option<String>, ConfigError> {
        Ok(Some(self.text(key)?).filter(|text| !text.is_empty()))
    }

    pub fn parse<T: FromStr<Err: fmt::Display>>(&self, key: &str) -> Result<T, ConfigError> {
        let Some(setting) = self.settings.get(key) else {
            return Err(ConfigError(vec![format!("`{key}` has no default")]));
        };
        setting.text.parse().map_err(|error| self.wrong(key, &error))
    }

    /// The error for a value that reads well and cannot be right.
    pub fn wrong(&self, key: &str, why: &dyn fmt::Display) -> ConfigError {
        ConfigError(vec![match self.settings.get(key) {
            Some(setting) => format!("{}: `{key}` = \"{}\": {why}", setting.origin, setting.shown(key)),
            None => format!("`{key}`: {why}"),
        }])
    }

    fn set(&mut self, key: &str, text: String, origin: Origin) -> Option<String> {
        let Some(setting) = self.settings.get_mut(key) else {
            let section = key.split('.').next().unwrap_or_default();
            return Some(format!("{origin}: no setting `{key}`; {}", self.keys_of(section)));
        };
        if !setting.shape.accepts(&text) {
            return Some(format!("{origin}: `{key}` must be {}, not \"{text}\"", setting.shape.words()));
        }
        setting.text = text;
        setting.origin = origin;
        None
    }

    fn section_of_variable(&self, name: &str) -> Option<String> {
        let sections = self.settings.keys().filter_map(|key| key.split('.').next());
        sections.map(str::to_owned).find(|section| name.starts_with(&format!("{}_", variable_name(section))))
    }

    fn keys_of(&self, section: &str) -> String {
        let prefix = format!("{section}.");
        let keys: Vec<&str> = self.settings.keys().filter_map(|key| key.strip_prefix(&prefix)).collect();
        if keys.is_empty() {
            let mut sections: Vec<&str> =
                self.settings.keys().filter_map(|key| key.split('.').next()).collect();
            sections.dedup();
            return format!("the sections are {}", sections.join(", "));
        }
        format!("[{section}] has {}", keys.join(", "))
    }
}

impl Setting {
    /// The value as it may be shown: what is secret in an address is not, nor is a key.
    pub fn shown(&self, key: &str) -> String {
        let shown = match key {
            _ if self.text.is_empty() => Some(String::new()),
            _ if SECRETS.contains(&key) => None,
            "nats.url" => address::servers_shown(&self.text),
            _ if key.ends_with("url") || key.ends_with("endpoint") => address::shown(&self.text),
            _ => Some(self.text.clone()),
        };
        shown.unwrap_or_else(|| "***".to_owned())
    }
}

/// `database.url` is read from `GPUAAS_DATABASE_URL`.
pub fn variable_name(key: &str) -> String {
    format!("GPUAAS_{}", key.replace('.', "_").to_uppercase())
}

/// Whether Kubernetes, which tells every container of the Services beside it, made this variable: of a Service named
/// `gpuaas-registry` they begin like our section. A port that is a bare number somebody wrote and meant for us.
fn tells_of_a_service(name: &str, text: &str) -> bool {
    let of_a_port = |rest: &str| {
        let (number, protocol) = rest.split_once('_').unwrap_or_default();
        let is_known = ["TCP", "UDP", "SCTP"].iter().any(|known| protocol.starts_with(known));
        is_known && number.parse::<u16>().is_ok()
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && text.contains("://"))
        || name.split("_PORT_").skip(1).any(of_a_port)
}

pub fn default_file() -> &'static str {
    DEFAULTS
}

fn entries(contents: &str) -> Result<Vec<Entry>, String> {
    // The error's own words would repeat the line, which may hold a secret.
    let table = DeTable::parse(contents).map_err(|error| match error.span() {
        Some(span) => format!("line {}: {}", line_of(contents, span.start), error.message()),
        None => error.message().to_owned(),
    })?;
    let mut found = Vec::new();
    collect(table.get_ref(), "", contents, &mut found);
    Ok(found)
}

fn collect(table: &DeTable<'_>, prefix: &str, contents: &str, found: &mut Vec<Entry>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        let line = line_of(contents, name.span().start);
        match value.get_ref() {
            DeValue::Table(inner) => collect(inner, &format!("{key}."), contents, found),
            leaf => found.push(Entry { key, text: text_of(leaf), shape: Shape::of(leaf), line }),
        }
    }
}

fn line_of(contents: &str, at: usize) -> usize {
    contents.get(..at).unwrap_or(contents).matches('\n').count() + 1
}

fn text_of(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        other => other.type_str().to_owned(),
    }
}
