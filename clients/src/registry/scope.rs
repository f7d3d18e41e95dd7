//! What a registry client asks for, and what it is given: `repository:<name>:<actions>`. A grant is the part of what was
//! asked that is allowed; the rest is dropped without a word, as the protocol wants it.

use serde::{Serialize, Serializer};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Pull,
    Push,
    Delete,
}

impl Action {
    const ALL: [Action; 3] = [Action::Pull, Action::Push, Action::Delete];

    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Pull => "pull",
            Action::Push => "push",
            Action::Delete => "delete",
        }
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One repository and what may be done with it. Names match exactly: registries know no wildcards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Access {
    #[serde(rename = "type")]
    kind: &'static str,
    pub name: String,
    pub actions: Vec<Action>,
}

impl Access {
    pub fn to(repository: &str, actions: &[Action]) -> Access {
        Access { kind: "repository", name: repository.to_owned(), actions: actions.to_vec() }
    }

    /// The part of `asked` that is within this.
    pub fn grant(&self, asked: &Scope) -> Option<Access> {
        let mut actions: Vec<Action> =
            asked.actions.iter().copied().filter(|action| self.actions.contains(action)).collect();
        actions.sort_unstable();
        actions.dedup();
        (asked.name == self.name && !actions.is_empty()).then(|| Access {
            kind: "repository",
            name: self.name.clone(),
            actions,
        })
    }
}

/// One scope as a client wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub name: String,
    pub actions: Vec<Action>,
}

impl Scope {
    /// All scopes of one parameter, which may hold several. What is not about a repository, or not understood, asks for
    /// nothing. A name may hold colons (a host's port), so the ends decide.
    pub fn parse_all(text: &str) -> Vec<Scope> {
        text.split_whitespace().filter_map(Scope::parse).collect()
    }

    fn parse(text: &str) -> Option<Scope> {
        let (kind, rest) = text.split_once(':')?;
        let (name, actions) = rest.rsplit_once(':')?;
        let actions: Vec<Action> = actions
            .split(',')
            .filter_map(|word| Action::ALL.into_iter().find(|action| action.as_str() == word))
            .collect();
        (kind == "repository").then(|| Scope { name: name.to_owned(), actions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_what_was_asked_and_is_allowed() {
        let publish = Access::to("gpuaas/apps/p1/a1", &[Action::Pull, Action::Push]);
        let granted = |text: &str| -> Vec<Vec<Action>> {
            Scope::parse_all(text)
                .iter()
                .filter_map(|asked| publish.grant(asked))
                .map(|a| a.actions)
                .collect()
        };
        assert_eq!(granted("repository:gpuaas/apps/p1/a1:push,pull"), [vec![Action::Pull, Action::Push]]);
        assert_eq!(granted("repository:gpuaas/apps/p1/a1:pull,pull"), [vec![Action::Pull]]);
        assert_eq!(granted("repository:gpuaas/apps/p1/a1:delete,pull"), [vec![Action::Pull]]);
        for nothing in [
            "",
            "repository:gpuaas/apps/p1/a2:pull",
            "repository:gpuaas/apps/p1/a1/x:pull",
            "repository:gpuaas/apps/p1/*:pull",
            "repository:gpuaas/apps/p1/a1:*",
            "registry:catalog:*",
            "repository:gpuaas/apps/p1/a1",
        ] {
            assert!(granted(nothing).is_empty(), "{nothing}");
        }
    }

    #[test]
    fn several_scopes_come_in_one_parameter_and_names_may_hold_a_port() {
        let asked = Scope::parse_all("repository:a/b:pull  repository:host:5000/c:pull,push");
        let names: Vec<&str> = asked.iter().map(|scope| scope.name.as_str()).collect();
        assert_eq!(names, ["a/b", "host:5000/c"]);
    }
}
