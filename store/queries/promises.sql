-- What the platform owes beside what its runs do. With $1 only what changed since then; without, everything. Events older
-- than a day are not asked for: they are not kept for ever.
with instance as materialized (
    select * from app_instances where updated_at >= coalesce($1::timestamptz, '-infinity')
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
-- An act by somebody whom the platform knows came through its API.
select 'P10', a.run_id, 'somebody''s ' || a.act || ' was not audited'
from engine.act a
where a.run_id is not null and a.at >= coalesce($1::timestamptz, '-infinity')
  and (exists (select from users u where u.id::text = a.actor)
       or exists (select from service_accounts s where s.id::text = a.actor))
  and not exists (select from audit t where t.correlation_id = a.correlation_id and t.result = 'succeeded')
