//! The first step of an end: nobody reaches the instance any more. It answers what is to be asked of the node, and goes on being
//! read in the form that runs wrote it down in before.

use activities::instance;
use domain::InstanceStatus;
use engine::Fault;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use store::{allocations, app_instances};
use uuid::Uuid;

/// Where the instance stands that is to end, as the journal keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Stands {
    On {
        node_id: Uuid,
        was_given_key: bool,
    },
    /// Nowhere, if it was never placed. Runs that began before keys were asked after wrote their node down like this.
    Plainly(Option<Uuid>),
}

impl Stands {
    pub(super) fn node(self) -> Option<Uuid> {
        match self {
            Stands::On { node_id, .. } => Some(node_id),
            Stands::Plainly(node_id) => node_id,
        }
    }

    /// Where nobody looked, the node is asked: one that has no such key says so.
    pub(super) fn may_have_left_a_key(self) -> bool {
        !matches!(self, Stands::On { was_given_key: false, .. })
    }
}

pub(super) async fn stop_accepting_work(conn: &mut PgConnection, instance: Uuid) -> Result<Stands, Fault> {
    let now = instance::held(conn, instance).await?;
    let from = now.status()?;
    if from != InstanceStatus::Decommissioning {
        let to = InstanceStatus::Decommissioning;
        if !app_instances::move_to(conn, instance, from, to, None).await? {
            return Err(Fault::terminal("state_conflict", format!("the instance is {from}")));
        }
    }
    app_instances::set_endpoints(conn, instance, &json!([])).await?;
    let allocation = match now.allocation_id {
        Some(id) => allocations::find(conn, id).await?,
        None => None,
    };
    let Some(allocation) = allocation else { return Ok(Stands::Plainly(None)) };
    Ok(Stands::On { node_id: allocation.node_id, was_given_key: instance::was_given_key(&now)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_releases_wrote_down_of_where_an_instance_stands_is_read() {
        let node_id = Uuid::from_u128(7);
        for stands in [
            Stands::On { node_id, was_given_key: true },
            Stands::On { node_id, was_given_key: false },
            Stands::Plainly(None),
        ] {
            assert_eq!(serde_json::from_value::<Stands>(json!(stands)).unwrap(), stands);
        }
        let earlier = serde_json::from_value::<Stands>(json!(Some(node_id))).unwrap();
        assert_eq!((earlier.node(), earlier.may_have_left_a_key()), (Some(node_id), true));
        assert_eq!(serde_json::from_value::<Stands>(json!(None::<Uuid>)).unwrap().node(), None);
    }
}
