//! Review: `A/apps/submissions`, `/{id}` with what changed, `/{id}/approve|reject`, and a team's own at
//! `P/apps/submissions`.

mod decide;
mod read;

pub(crate) use decide::{approve, reject};
pub(crate) use read::{list, show};

use api_types::{Submission, SubmissionStatus};
use store::submissions as table;

pub(crate) fn shown(row: table::Submission) -> Submission {
    Submission {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        app_slug: row.app_slug,
        version: row.version,
        status: match row.status.as_str() {
            "pending" => SubmissionStatus::Pending,
            "approved" => SubmissionStatus::Approved,
            "rejected" => SubmissionStatus::Rejected,
            _ => SubmissionStatus::Superseded,
        },
        content_digest: row.content_digest,
        submitted_by: row.submitted_by,
        decided_by: row.decided_by,
        decided_at: row.decided_at,
        reason: row.reason,
        created_at: row.created_at,
    }
}
