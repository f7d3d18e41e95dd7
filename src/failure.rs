//! How a command ends badly: what happened, said for a person, and an exit code that says whose turn it is.

use std::fmt::Display;
use std::process::ExitCode;

use serde::Serialize;

/// The exit codes a script may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The command, its arguments or its configuration are wrong.
    Usage = 1,
    /// A server, a database or the machine did not do its part.
    Server = 2,
    /// Everything worked and the answer is no.
    Failed = 6,
}

#[derive(Debug, Serialize)]
pub struct Failure {
    pub code: Kind,
    pub message: String,
}

impl Failure {
    pub fn usage(message: impl Display) -> Failure {
        Failure { code: Kind::Usage, message: message.to_string() }
    }

    pub fn server(message: impl Display) -> Failure {
        Failure { code: Kind::Server, message: message.to_string() }
    }

    pub fn failed(message: impl Display) -> Failure {
        Failure { code: Kind::Failed, message: message.to_string() }
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
