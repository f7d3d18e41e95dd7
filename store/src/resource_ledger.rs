//! What instances hold of nodes, as a ledger that only grows: the balance is what is held. Lock the allocation or node
//! before taking, or two may take the same.

use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Gpu,
    CpuCore,
    MemoryGib,
    Port,
    Workload,
    ServiceAccount,
    PullIntent,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Gpu => "gpu",
            Kind::CpuCore => "cpu_core",
            Kind::MemoryGib => "memory_gib",
            Kind::Port => "port",
            Kind::Workload => "workload",
            Kind::ServiceAccount => "service_account",
            Kind::PullIntent => "pull_intent",
        }
    }
}

/// Who takes or gives back, and on whose behalf.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub instance_id: Uuid,
    pub run_id: Uuid,
    pub correlation_id: &'a str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub kind: String,
    pub resource: String,
    pub quantity: i64,
}

pub async fn post(
    conn: &mut PgConnection,
    holder: Holder<'_>,
    kind: Kind,
    resource: &str,
    quantity: i32,
) -> sqlx::Result<()> {
    if quantity == 0 {
        return Ok(());
    }
    entry(conn, holder, kind.as_str(), resource, quantity).await
}

async fn entry(
    conn: &mut PgConnection,
    holder: Holder<'_>,
    kind: &str,
    resource: &str,
    quantity: i32,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into resource_ledger (id, org_id, project_id, instance_id, kind, resource, quantity, run_id, correlation_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        Uuid::now_v7(),
        holder.org_id,
        holder.project_id,
        holder.instance_id,
        kind,
        resource,
        quantity,
        holder.run_id,
        holder.correlation_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What an instance holds, by kind and resource.
pub async fn balance(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<Vec<Held>> {
    sqlx::query_as!(
        Held,
        r#"select kind, resource, sum(quantity) as "quantity!" from resource_ledger where instance_id = $1
           group by kind, resource having sum(quantity) <> 0 order by kind, resource"#,
        instance
    )
    .fetch_all(conn)
    .await
}

/// What one run took for the instance and still holds.
pub async fn balance_of_run(conn: &mut PgConnection, instance: Uuid, run: Uuid) -> sqlx::Result<Vec<Held>> {
    sqlx::query_as!(
        Held,
        r#"select kind, resource, sum(quantity) as "quantity!" from resource_ledger where instance_id = $1 and run_id = $2
           group by kind, resource having sum(quantity) <> 0 order by kind, resource"#,
        instance,
        run
    )
    .fetch_all(conn)
    .await
}

/// Gives back what the run took of these kinds.
pub async fn give_back_of_run(
    conn: &mut PgConnection,
    holder: Holder<'_>,
    kinds: &[Kind],
) -> sqlx::Result<()> {
    let mut held = balance_of_run(conn, holder.instance_id, holder.run_id).await?;
    held.retain(|held| kinds.iter().any(|kind| kind.as_str() == held.kind));
    give_back(conn, holder, &held).await
}

/// Gives all of this back. Call it on what `balance` or `balance_of_run` said in the same transaction, under the
/// instance's lock, so that nothing is given back twice.
pub async fn give_back(conn: &mut PgConnection, holder: Holder<'_>, held: &[Held]) -> sqlx::Result<()> {
    for one in held {
        let quantity = i32::try_from(-one.quantity).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        entry(conn, holder, &one.kind, &one.resource, quantity).await?;
    }
    Ok(())
}

/// What a run took for the instance and nobody gave back.
struct Taken {
    run_id: Uuid,
    held: Held,
}

/// By run, the newest first.
async fn taken(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<Vec<Taken>> {
    let rows = sqlx::query!(
        r#"select run_id, kind, resource, sum(quantity) as "quantity!" from resource_ledger t
           where instance_id = $1 and (select sum(quantity) from resource_ledger whole
               where whole.instance_id = $1 and whole.kind = t.kind and whole.resource = t.resource) <> 0
           group by run_id, kind, resource having sum(quantity) <> 0 order by run_id desc, kind, resource"#,
        instance
    )
    .fetch_all(conn)
    .await?;
    let read = rows.into_iter().map(|row| Taken {
        run_id: row.run_id,
        held: Held { kind: row.kind, resource: row.resource, quantity: row.quantity },
    });
    Ok(read.collect())
}

/// Gives back everything that the instance holds, each in the name of the run that took it: what the present run takes
/// afterwards is then its own share, and nothing else is.
pub async fn give_back_for_takers(conn: &mut PgConnection, holder: Holder<'_>) -> sqlx::Result<()> {
    for Taken { run_id, held } in taken(conn, holder.instance_id).await? {
        give_back(conn, Holder { run_id, ..holder }, &[held]).await?;
    }
    Ok(())
}

/// Gives back all but this, each part in the name of a run that took it. What is kept is so the share of the first, which served:
/// a later one may have been undone, and nothing is its own then.
pub async fn keep_only(conn: &mut PgConnection, holder: Holder<'_>, kept: &[Held]) -> sqlx::Result<()> {
    let mut beyond = balance(conn, holder.instance_id).await?;
    let same = |one: &Held, other: &Held| one.kind == other.kind && one.resource == other.resource;
    for held in &mut beyond {
        held.quantity -= kept.iter().find(|one| same(one, held)).map_or(0, |one| one.quantity);
    }
    for Taken { run_id, mut held } in taken(conn, holder.instance_id).await? {
        let Some(rest) = beyond.iter_mut().find(|rest| same(rest, &held)) else { continue };
        held.quantity = held.quantity.min(rest.quantity);
        if held.quantity > 0 {
            rest.quantity -= held.quantity;
            give_back(conn, Holder { run_id, ..holder }, &[held]).await?;
        }
    }
    beyond.retain(|rest| rest.quantity != 0);
    give_back(conn, holder, &beyond).await
}

/// What all instances together hold of one thing, by kind.
pub async fn held_of(conn: &mut PgConnection, resource: &str) -> sqlx::Result<Vec<Held>> {
    sqlx::query_as!(
        Held,
        r#"select kind, resource, sum(quantity) as "quantity!" from resource_ledger where resource = $1
           group by kind, resource having sum(quantity) <> 0 order by kind"#,
        resource
    )
    .fetch_all(conn)
    .await
}

/// Which of these GPUs of an allocation instances hold.
pub async fn gpus_held(conn: &mut PgConnection, allocation: Uuid, gpus: &[i32]) -> sqlx::Result<Vec<i32>> {
    let names: Vec<String> = gpus.iter().map(|index| gpu_of(allocation, *index)).collect();
    let held = sqlx::query_scalar!(
        "select resource from resource_ledger where resource = any($1) group by resource having sum(quantity) > 0",
        names.as_slice()
    )
    .fetch_all(conn)
    .await?;
    Ok(gpus.iter().copied().filter(|index| held.contains(&gpu_of(allocation, *index))).collect())
}

/// Whether anybody holds this port of the node.
pub async fn port_is_held(conn: &mut PgConnection, node: Uuid, port: u16) -> sqlx::Result<bool> {
    Ok(!held_of(conn, &port_of(node, port)).await?.is_empty())
}

pub fn allocation(id: Uuid) -> String {
    format!("allocation:{id}")
}

/// One GPU of an allocation.
pub fn gpu_of(allocation: Uuid, index: i32) -> String {
    format!("allocation:{allocation}:gpu:{index}")
}

pub fn port_of(node: Uuid, port: u16) -> String {
    format!("node:{node}:{port}")
}

/// A thing that is only ever one instance's.
pub fn own(id: Uuid) -> String {
    id.to_string()
}

pub fn workload_on(node: Uuid, generation: i64) -> String {
    format!("node:{node}:g{generation}")
}

/// The generation of such a workload; `None` for anything else.
pub fn generation_on(node: Uuid, resource: &str) -> Option<i64> {
    resource.strip_prefix(&format!("node:{node}:g"))?.parse().ok()
}
