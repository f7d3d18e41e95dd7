-- What the platform owes beside what its runs do. Without $1, everything; with it, only what changed since then, and of the
-- instances that stand still the part $2 of 1024, whose turn it is.
with instance as materialized (
    select * from app_instances
    where updated_at >= coalesce($1::timestamptz, '-infinity') or (hashtext(id::text) & 1023) = $2::int
), version as materialized (
    select v.*, a.owner_project_id as project_id from app_versions v join apps a on a.id = v.app_id
    where v.updated_at >= coalesce($1::timestamptz, '-infinity')
), artifact as materialized (
    select * from app_artifacts where updated_at >= coalesce($1::timestamptz, '-infinity')
), standing (kind, id, project_id, state) as materialized (
    -- How what somebody made stands, as far back as events are kept for certain.
    select 'instance', id, project_id, status from instance
    where is_principal(created_by) and created_at > (select engine.now()) - interval '29 days'
    union all
    select 'version', id, project_id, status from version
    where is_principal(registered_by) and created_at > (select engine.now()) - interval '29 days'
    union all
    select 'artifact', a.id, a.project_id, s.state from artifact a cross join lateral (values (lifecycle_state), (trust_state)) s (state)
    where is_principal(created_by) and created_at > (select engine.now()) - interval '29 days'
), transition (kind, state, told_as) as (
    values ('instance', 'deploying', array['apps.instance.deploying']),
           ('instance', 'upgrading', array['apps.instance.upgrade_requested']),
           ('instance', 'rolling_back', array['apps.instance.rollback_requested']),
           ('instance', 'decommissioning', array['apps.instance.decommission_requested']),
           ('instance', 'failed', array['apps.instance.failed']),
           ('version', 'draft', array['apps.version.registered']),
           ('version', 'staged', array['apps.version.staged', 'apps.version.canary_halted']),
           ('version', 'canary', array['apps.version.canary_started']),
           ('version', 'active', array['apps.version.activated']),
           ('version', 'deprecated', array['apps.version.deprecated']),
           ('version', 'retired', array['apps.version.retired']),
           ('artifact', 'deprecated', array['apps.artifact.deprecated']),
           ('artifact', 'retired', array['apps.artifact.retired']),
           ('artifact', 'verified', array['apps.artifact.verified']),
           ('artifact', 'failed_verification', array['apps.artifact.verification_failed']),
           ('artifact', 'revoked', array['apps.artifact.revoked'])
), beginning (kind, told_as) as (
    -- What happens to each of them exactly once.
    values ('instance', 'apps.instance.requested'), ('artifact', 'apps.artifact.published')
), of_standing as materialized (
    select distinct s.kind, s.id, o.id as event_id, o.type, o.correlation_id
    from standing s join outbox o on o.project_id = s.project_id and o.subject = s.id::text
), balance as materialized (
    select l.instance_id, l.kind, l.resource, sum(l.quantity) as held
    from resource_ledger l join instance i on i.id = l.instance_id group by l.instance_id, l.kind, l.resource
), told as materialized (
    select o.subject, o.type, count(*) as times
    from outbox o join instance i on o.project_id = i.project_id and o.subject = i.id::text group by o.subject, o.type
)
select 'P4' as "promise!", b.instance_id as "subject!",
       'gave back ' || -b.held || ' more of ' || b.kind || ' ' || b.resource || ' than it took' as "detail!"
from balance b where b.held < 0
union all
select 'P4', b.instance_id, b.kind || ' ' || b.resource || ' is held ' || b.held || ' times'
from balance b where (b.kind in ('port', 'workload') or b.resource like '%:gpu:%') and b.held > 1
union all
select 'P4', min(b.instance_id::text)::uuid, b.kind || ' ' || b.resource || ' is held by ' || count(*) || ' instances'
from balance b where (b.kind = 'port' or b.resource like '%:gpu:%') and b.held > 0 group by b.kind, b.resource having count(*) > 1
union all
select 'P8', i.id, 'is ' || i.status || ' and still holds ' || string_agg(b.kind || ' ' || b.resource, ', ')
from instance i join balance b on b.instance_id = i.id and b.held > 0
where (i.status = 'decommissioned'
       -- What a run took that ended well is the instance's own until it is decommissioned, whatever befell it since.
       or (i.status = 'failed' and not exists (
               select from resource_ledger l join engine.run r on r.id = l.run_id
               where l.instance_id = i.id and l.kind = b.kind and l.resource = b.resource and l.quantity > 0
                 and (r.finished_at is null or r.state = 'succeeded'))))
  -- What a run has yet to give back, or a node that does not answer, is owed and not lost.
  and not exists (select from engine.run r where r.finished_at is null and r.target = 'app_instance:' || i.id)
  and not exists (select from teardown_debts d where d.instance_id = i.id and d.collected_at is null)
group by i.id, i.status
union all
select 'P9', i.id, 'was decommissioned, which was told ' || coalesce(t.times, 0) || ' times'
from instance i left join told t on t.subject = i.id::text and t.type = 'apps.instance.decommissioned'
where i.status = 'decommissioned' and i.decommissioned_at > engine.now() - interval '1 day' and t.times is distinct from 1
union all
select 'P9', i.id, 'came to serve, which was never told'
from instance i
where i.activated_at > engine.now() - interval '1 day'
  and not exists (select from told t where t.subject = i.id::text
      and t.type in ('apps.instance.running', 'apps.instance.upgraded', 'apps.instance.rolled_back'))
union all
select 'P9', s.id, 'is ' || s.state || ', which was never told'
from standing s join transition t using (kind, state)
where not exists (select from of_standing o where o.id = s.id and o.type = any(t.told_as))
union all
select 'P9', s.id, 'was ' || b.told_as || ' ' || count(o.event_id) || ' times'
from (select distinct kind, id from standing) s join beginning b using (kind)
left join of_standing o on o.id = s.id and o.type = b.told_as
group by s.id, b.told_as having count(o.event_id) <> 1
union all
select 'P8', l.instance_id, 'has ' || l.kind || ' ' || l.resource || ' of run ' || l.run_id || ', which was undone'
from resource_ledger l join instance i on i.id = l.instance_id join engine.run r on r.id = l.run_id
where r.state in ('compensated', 'failed', 'cancelled')
  and not exists (select from engine.run o where o.finished_at is null and o.target = 'app_instance:' || i.id)
  and not exists (select from teardown_debts d where d.instance_id = i.id and d.collected_at is null)
  and exists (select from balance b where b.instance_id = i.id and b.kind = l.kind and b.resource = l.resource and b.held > 0)
group by l.instance_id, l.kind, l.resource, l.run_id having sum(l.quantity) > 0
union all
-- What is told of what somebody made, somebody did, and it stands in the audit log; but a canary halts by itself.
select 'P10', o.id, o.type || ' was not audited'
from of_standing o
where o.type in (select told_as from beginning union select unnest(told_as) from transition where kind <> 'instance')
  and o.type <> 'apps.version.canary_halted'
  and not exists (select from audit a where a.correlation_id = o.correlation_id and a.result = 'succeeded')
union all
select 'P10', e.app_id, 'an entitlement was changed, which was not audited'
from entitlements e join apps a on a.id = e.app_id
where e.updated_at >= coalesce($1::timestamptz, '-infinity') and is_principal(e.updated_by)
  and not exists (select from audit t where t.target = 'entitlement:' || e.project_id || '/' || a.slug and t.result = 'succeeded')
union all
select 'P10', n.id, 'a node was made, which was not audited'
from nodes n
where n.created_at >= coalesce($1::timestamptz, '-infinity') and is_principal(n.created_by)
  and not exists (select from audit t where t.target = 'node:' || n.id and t.result = 'succeeded')
union all
select 'P10', l.id, 'an allocation was made, which was not audited'
from allocations l
where l.created_at >= coalesce($1::timestamptz, '-infinity') and is_principal(l.created_by)
  and not exists (select from audit t where t.correlation_id = l.correlation_id and t.result = 'succeeded')
union all
select 'P10', p.id, 'a price was set, which was not audited'
from prices p
where p.created_at >= coalesce($1::timestamptz, '-infinity') and is_principal(p.created_by)
  and not exists (select from audit t where t.target = 'price:' || p.id and t.result = 'succeeded')
union all
-- An act by somebody whom the platform knows came through its API.
select 'P10', coalesce(a.run_id, a.id), 'somebody''s ' || a.act || coalesce(' of schedule ' || a.schedule, '') || ' was not audited'
from engine.act a
where a.at >= coalesce($1::timestamptz, '-infinity')
  and case when a.actor ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then is_principal(a.actor::uuid) end
  and not exists (select from audit t where t.correlation_id = a.correlation_id and t.result = 'succeeded')
