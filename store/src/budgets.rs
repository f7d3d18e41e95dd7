//! Budgets: what a project may spend in a calendar month, and what becomes of it when it does.

use chrono::{DateTime, NaiveDate, Utc};
use domain::budget::{BudgetAction, BudgetMode};
use domain::rating::month_of;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{parsed, rated_series, server};

#[derive(Clone, Debug)]
pub struct Budget {
    /// Without one there is no limit.
    pub amount_minor: Option<i64>,
    pub action: BudgetAction,
    pub mode: BudgetMode,
    pub updated_by: Uuid,
    pub updated_at: DateTime<Utc>,
}

struct Row {
    amount_minor: Option<i64>,
    action: String,
    mode: String,
    updated_by: Uuid,
    updated_at: DateTime<Utc>,
}

impl Row {
    fn budget(self) -> sqlx::Result<Budget> {
        Ok(Budget {
            amount_minor: self.amount_minor,
            action: parsed(&self.action)?,
            mode: parsed(&self.mode)?,
            updated_by: self.updated_by,
            updated_at: self.updated_at,
        })
    }
}

pub async fn find(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<Budget>> {
    let row = sqlx::query_as!(
        Row,
        "select amount_minor, action, mode, updated_by, updated_at from budgets where project_id = $1",
        project
    )
    .fetch_optional(conn)
    .await?;
    row.map(Row::budget).transpose()
}

/// Held still until the transaction ends.
pub async fn find_locked(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<Budget>> {
    let row = sqlx::query_as!(
        Row,
        "select amount_minor, action, mode, updated_by, updated_at from budgets where project_id = $1 for update",
        project
    )
    .fetch_optional(conn)
    .await?;
    row.map(Row::budget).transpose()
}

pub async fn set(
    conn: &mut PgConnection,
    (org, project): (Uuid, Uuid),
    amount_minor: Option<i64>,
    action: BudgetAction,
    mode: BudgetMode,
    by: Uuid,
) -> sqlx::Result<Budget> {
    let row = sqlx::query_as!(
        Row,
        "insert into budgets (project_id, org_id, amount_minor, action, mode, updated_by) values ($1, $2, $3, $4, $5, $6)
         on conflict (project_id) do update set amount_minor = excluded.amount_minor, action = excluded.action,
             mode = excluded.mode, updated_by = excluded.updated_by, updated_at = engine.now()
         returning amount_minor, action, mode, updated_by, updated_at",
        project,
        org,
        amount_minor,
        action.as_str(),
        mode.as_str(),
        by
    )
    .fetch_one(conn)
    .await?;
    row.budget()
}

/// Projects whose enforced budget says that everything stops once it is spent, which they have this month.
pub async fn stopping(conn: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select b.project_id from budgets b
         where b.action = 'stop' and b.mode = 'enforce' and b.amount_minor < (
             select coalesce(sum(s.amount_minor), 0) from rated_series s
             where s.project_id = b.project_id and s.month = date_trunc('month', engine.now(), 'UTC')::date)
         order by b.project_id"
    )
    .fetch_all(conn)
    .await
}

/// Where a project stands with its budget.
#[derive(Clone, Debug)]
pub struct Standing {
    pub budget: Option<Budget>,
    /// This month's first day, and what was spent since.
    pub month: NaiveDate,
    pub spent_minor: i64,
}

impl Standing {
    pub fn is_exceeded(&self) -> bool {
        let limit = self.budget.as_ref().and_then(|budget| budget.amount_minor);
        limit.is_some_and(|limit| self.spent_minor > limit)
    }

    /// Whether nothing new may be deployed.
    pub fn denies_new(&self) -> bool {
        let denies = |budget: &Budget| budget.action.denies_new() && budget.mode == BudgetMode::Enforce;
        self.is_exceeded() && self.budget.as_ref().is_some_and(denies)
    }
}

pub async fn standing(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Standing> {
    let budget = find(conn, project).await?;
    let month = month_of(server::now(conn).await?);
    let spent_minor = rated_series::spent(conn, project, month).await?;
    Ok(Standing { budget, month, spent_minor })
}
