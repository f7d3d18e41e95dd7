//! Errors are sorted once, where they enter: may it be tried again, is it final, or must a person look?

use serde::{Deserialize, Serialize};

/// What went wrong, in words an operator can read. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Passing trouble: the retry rule decides when to try again.
    #[error("{}: {}", .0.code, .0.message)]
    Retry(Reason),
    /// It will never work: the run unwinds.
    #[error("{}: {}", .0.code, .0.message)]
    Terminal(Reason),
    /// A person must look before anything else happens: the run pauses.
    #[error("{}: {}", .0.code, .0.message)]
    NeedsOperator(Reason),
}

impl Fault {
    pub fn retry(code: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault::Retry(Reason { code: code.into(), message: message.into() })
    }

    pub fn terminal(code: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault::Terminal(Reason { code: code.into(), message: message.into() })
    }

    pub fn needs_operator(code: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault::NeedsOperator(Reason { code: code.into(), message: message.into() })
    }

    pub fn reason(&self) -> &Reason {
        match self {
            Fault::Retry(reason) | Fault::Terminal(reason) | Fault::NeedsOperator(reason) => reason,
        }
    }
}

/// Trouble with our own database passes; a violated constraint does not.
impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Fault {
        match &error {
            sqlx::Error::Database(refusal) if refusal.constraint().is_some() => {
                Fault::terminal("constraint_violated", format!("the database refused: {}", refusal.message()))
            }
            _ => Fault::retry("database", error.to_string()),
        }
    }
}

/// The workflow function stops here. It is only ever passed on with `?`; the driver knows what it means.
#[derive(Debug)]
pub struct Halt(pub(crate) Stop);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The run is at rest in the database: waiting, paused, put back or finished.
    Rested,
    /// Somebody else owns the run, or nobody does any more.
    Fenced,
    /// The run turned back; the driver now undoes what was done.
    Turned,
    /// The database did not answer; the run keeps its owner until it does or the lease ends.
    Lost,
    /// A test asked for the process to die here.
    Crashed,
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Halt {
        Halt(stop)
    }
}
