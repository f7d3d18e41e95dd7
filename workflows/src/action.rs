//! A lifecycle action: something people ask of a resource and a durable run then does.
//!
//! One file declares an action (its verb, what it asks of its caller, the states it is legal in, its input and its
//! workflow) and one line registers it. The API mounts the same handler for each, and writes its document from here.

use std::future::Future;

use activities::Env;
use domain::{ErrorCode, EventType, Permission};
use engine::Workflow;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::PgConnection;
pub use store::Refused;
use utoipa::ToSchema;
use uuid::Uuid;

/// What actions act on.
pub trait Subject: Send + Sync + Sized + 'static {
    /// Its name in targets of runs and in the audit log.
    const KIND: &'static str;

    /// The register: one line per action.
    fn actions<V: Visitor<Self>>(visitor: &mut V);

    fn id(&self) -> Uuid;
    /// Whose runs its actions are: organization and project. Nil where they are the platform's own.
    fn owner(&self) -> (Uuid, Uuid);
    fn state(&self) -> &'static str;

    /// One active run per target.
    fn target(&self) -> String {
        format!("{}:{}", Self::KIND, self.id())
    }
}

pub trait Action: Send + Sync + 'static {
    type Subject: Subject;
    /// The body of the request; refused before anything is read where it does not fit.
    type Input: DeserializeOwned + ToSchema + Default + Send + 'static;
    type Run: Workflow<Env = Env>;

    /// The last word of its path.
    const VERB: &'static str;
    /// Its name in the API document and the audit log.
    const OPERATION: &'static str;
    const SUMMARY: &'static str;
    const PERMISSION: Permission;
    /// The codes it answers besides those that every action may.
    const REFUSES: &'static [ErrorCode] = &[];
    /// Whether it takes the subject over from a run that acts on it, which is cancelled first.
    const SUPERSEDES: bool = false;

    fn is_legal(subject: &Self::Subject) -> bool;

    /// Whether it is under way or done already: asking again answers the run that does it, or did.
    fn is_begun(_: &Self::Subject) -> bool {
        false
    }

    fn reason(input: &Self::Input) -> Option<&str>;

    /// The run's input, decided on the request's transaction while the subject is held still.
    fn begin(
        conn: &mut PgConnection,
        subject: &Self::Subject,
        input: Self::Input,
        by: Requester,
    ) -> impl Future<Output = Result<Self::Run, Refused>> + Send;

    /// What the world is told in the transaction that starts the run.
    fn told(_: &Self::Subject, _: &Self::Run) -> Option<(EventType, Value)> {
        None
    }
}

/// Who asked for a run, and why, as the run itself tells it later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requester {
    pub actor_id: Uuid,
    pub actor_type: domain::ActorType,
    pub actor_role: Option<String>,
    pub reason: Option<String>,
}

/// Goes through the registered actions of one kind of subject. Each is a type, so a visitor sees them one by one.
pub trait Visitor<S: Subject> {
    fn action<A: Action<Subject = S>>(&mut self);
}

/// The verbs of the actions that are legal now.
pub fn allowed_actions<S: Subject>(subject: &S) -> Vec<&'static str> {
    struct Legal<'a, S>(&'a S, Vec<&'static str>);
    impl<S: Subject> Visitor<S> for Legal<'_, S> {
        fn action<A: Action<Subject = S>>(&mut self) {
            if A::is_legal(self.0) {
                self.1.push(A::VERB);
            }
        }
    }
    let mut legal = Legal(subject, Vec::new());
    S::actions(&mut legal);
    legal.1
}
