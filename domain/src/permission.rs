//! The permission keys. Every route names the one it asks for; roles are sets of these keys.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    WorkflowsRead,
    WorkflowsOperate,
}

impl Permission {
    pub const fn as_str(self) -> &'static str {
        match self {
            Permission::WorkflowsRead => "workflows.read",
            Permission::WorkflowsOperate => "workflows.operate",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
