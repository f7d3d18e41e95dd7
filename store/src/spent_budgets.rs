//! That a project has spent its budget: told once a month, and again only after it was not so. Whoever tells holds the head of
//! the project's ledger, which keeps what was told, so nobody else tells it meanwhile.

use domain::EventType;
use domain::event::{NewEvent, Thread};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::billing_ledger::{self, Kept};
use crate::{budgets, outbox};

/// What is to be told now, if anything; the head keeps that it was.
pub(crate) async fn news(
    conn: &mut PgConnection,
    project: Uuid,
    kept: &mut Kept,
) -> sqlx::Result<Option<Value>> {
    let standing = budgets::standing(conn, project).await?;
    let Some(budget) = standing.budget.as_ref().filter(|_| standing.is_exceeded()) else {
        kept.told_spent = None;
        return Ok(None);
    };
    let told = kept.told_spent.replace(standing.month);
    let spent = json!({
        "project_id": project, "month": standing.month, "spent_minor": standing.spent_minor,
        "budget_minor": budget.amount_minor, "action": budget.action, "mode": budget.mode, "currency": kept.currency,
    });
    Ok((told != Some(standing.month)).then_some(spent))
}

/// After a budget was set: one that is spent already takes effect, whether or not anything is posted ever again.
pub async fn tell(conn: &mut PgConnection, owner: (Uuid, Uuid), thread: Thread<'_>) -> sqlx::Result<()> {
    let (org, project) = owner;
    if billing_ledger::find(conn, project).await?.is_none() {
        return Ok(());
    }
    let mut kept = billing_ledger::hold(conn, org, project).await?;
    let told = kept.told_spent;
    if let Some(spent) = news(conn, project, &mut kept).await? {
        let event = NewEvent::of_project(owner, EventType::BudgetExceeded, project, &spent, thread);
        outbox::insert(conn, &event).await?;
    }
    if kept.told_spent != told {
        billing_ledger::keep(conn, project, &kept).await?;
    }
    Ok(())
}
