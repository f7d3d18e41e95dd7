//! Why a benchmark gives no figures. A bar that is missed is not a failure here: it is a figure.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the database says: {0}")]
    Database(#[from] sqlx::Error),
    #[error("a run was not accepted: {0}")]
    Start(#[from] engine::StartError),
    #[error("cannot set the database up: {0}")]
    Setup(String),
    #[error("`{program}` failed: {said}")]
    Program { program: String, said: String },
    #[error("cannot {verb}: {error}")]
    Io { verb: String, error: io::Error },
    /// The server is set up so that the figures would not count.
    #[error("these figures would not count: {0}")]
    Dishonest(String),
    #[error("promises were broken under load: {0}")]
    Broken(String),
    /// Whoever is told so comes again.
    #[error("the server is busy: {0}")]
    Busy(String),
    #[error("interrupted")]
    Interrupted,
    #[error("waited in vain until {0}")]
    Patience(String),
}

impl Failure {
    /// For `map_err`: says what could not be done.
    pub fn io(verb: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        let verb = verb.into();
        move |error| Failure::Io { verb, error }
    }
}
