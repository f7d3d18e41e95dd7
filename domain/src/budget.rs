//! Budgets: what happens when a project has spent more in a calendar month than it meant to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetAction {
    /// It is told.
    Warn,
    /// Nothing new is deployed until the month is over or the budget is raised.
    DenyNew,
    /// Everything that runs is decommissioned.
    Stop,
}

/// Whether the action is taken or only told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetMode {
    #[default]
    Simulate,
    Enforce,
}

impl BudgetAction {
    pub const ALL: [BudgetAction; 3] = [BudgetAction::Warn, BudgetAction::DenyNew, BudgetAction::Stop];

    pub const fn as_str(self) -> &'static str {
        match self {
            BudgetAction::Warn => "warn",
            BudgetAction::DenyNew => "deny_new",
            BudgetAction::Stop => "stop",
        }
    }

    /// Whether nothing new may come once the budget is spent.
    pub const fn denies_new(self) -> bool {
        matches!(self, BudgetAction::DenyNew | BudgetAction::Stop)
    }
}

impl BudgetMode {
    pub const ALL: [BudgetMode; 2] = [BudgetMode::Simulate, BudgetMode::Enforce];

    pub const fn as_str(self) -> &'static str {
        match self {
            BudgetMode::Simulate => "simulate",
            BudgetMode::Enforce => "enforce",
        }
    }
}

impl fmt::Display for BudgetAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BudgetAction {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<BudgetAction, UnknownWord> {
        let named = BudgetAction::ALL.into_iter().find(|action| action.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "an action of budgets"))
    }
}

impl FromStr for BudgetMode {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<BudgetMode, UnknownWord> {
        let named = BudgetMode::ALL.into_iter().find(|mode| mode.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "a mode of budgets"))
    }
}
