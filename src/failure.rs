//! How a command ends badly: what happened, said for a person, and an exit code that says whose turn it is.

use std::fmt::Display;
use std::process::ExitCode;

use api_types::{ErrorEnvelope, RunStatus};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// The exit codes a script may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The command, its arguments or its configuration are wrong.
    Usage = 1,
    /// A server, a database or the machine did not do its part.
    Server = 2,
    /// Nobody is signed in, or they may not do this.
    Auth = 3,
    NotFound = 4,
    /// What the command is about is in another state than it takes.
    Conflict = 5,
    /// Everything worked and the answer is no.
    Failed = 6,
}

#[derive(Debug, Serialize)]
pub struct Failure {
    pub code: Kind,
    pub message: String,
    /// What the platform's API said, where it was that which refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<ErrorEnvelope>>,
    /// The run that did not do what it was for, where that is what failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Box<Operation>>,
}

/// What somebody needs to know of a run that failed, to find it and to go on.
#[derive(Debug, Serialize)]
pub struct Operation {
    pub workflow_id: Uuid,
    pub kind: String,
    pub status: RunStatus,
    /// The step that it did not get over.
    pub step: Option<String>,
    /// What stopped it, as the run has it: a code and a message.
    pub cause: Option<Value>,
    pub correlation_id: String,
    /// Commands that lead on.
    pub next: Vec<String>,
}

impl Failure {
    fn new(code: Kind, message: impl Display) -> Failure {
        Failure { code, message: message.to_string(), answer: None, operation: None }
    }

    pub fn usage(message: impl Display) -> Failure {
        Failure::new(Kind::Usage, message)
    }

    pub fn server(message: impl Display) -> Failure {
        Failure::new(Kind::Server, message)
    }

    pub fn auth(message: impl Display) -> Failure {
        Failure::new(Kind::Auth, message)
    }

    pub fn not_found(message: impl Display) -> Failure {
        Failure::new(Kind::NotFound, message)
    }

    pub fn conflict(message: impl Display) -> Failure {
        Failure::new(Kind::Conflict, message)
    }

    pub fn failed(message: impl Display) -> Failure {
        Failure::new(Kind::Failed, message)
    }

    /// An answer of the API that is none of success.
    pub fn refused(answer: ErrorEnvelope) -> Failure {
        let code = match answer.code.status() {
            401 | 403 => Kind::Auth,
            404 => Kind::NotFound,
            409 | 412 => Kind::Conflict,
            429 | 500.. => Kind::Server,
            _ => Kind::Usage,
        };
        Failure { answer: Some(Box::new(answer.clone())), ..Failure::new(code, answer.message) }
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }
}

impl From<crate::config::ConfigError> for Failure {
    fn from(error: crate::config::ConfigError) -> Failure {
        Failure::usage(error)
    }
}
