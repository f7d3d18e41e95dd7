-- Without $1, everything. With it, what lives or ended since then, the latest first, and after the run $3 some that have their
-- turn whatever befell them; $2 bounds how many, so that looking stays cheap under load. What is dear, the journals, is
-- read of the latest $2 of each and of all that have their turn; of the rows ten times as many are looked at.
with recent as materialized (
    select distinct on (id) *
    from (
        (select *, row_number() over (order by id desc) as place from engine.run where finished_at is null
         order by id desc limit 10 * $2::bigint)
        union all
        (select *, row_number() over (order by finished_at desc) from engine.run
         where finished_at >= coalesce($1::timestamptz, '-infinity')
         order by finished_at desc limit 10 * $2::bigint)
        union all
        (select *, 0 from engine.run where id > $3::uuid order by id limit $2::bigint)
    ) run
    order by id, place
), looked_into as materialized (
    select id, correlation_id, finished_at, epoch from recent where $2::bigint is null or place <= $2
), step as materialized (
    select r.id as run_id, s.* from looked_into r cross join lateral engine.steps_of(r.id) s
), tried as materialized (
    select r.id as run_id, t.* from looked_into r cross join lateral engine.tries_of(r.id) t
), journal as materialized (
    select j.*, lag(j.epoch) over (partition by j.run_id order by j.seq) as epoch_before,
           row_number() over (partition by j.run_id order by j.seq) - 1 as place
    from looked_into r join engine.journal j on j.run_id = r.id
), event as materialized (
    -- `n` is the order in which they were written.
    select j.run_id, row_number() over (partition by j.run_id order by j.seq, o.n) as n, d.*
    from journal j
    cross join lateral json_array_elements(j.events) with ordinality as o (event, n)
    cross join lateral json_to_record(o.event) as d (e text, name text, key text, pos integer, state text)
), begun as materialized (
    select run_id, name, key, pos, n from event where e = 'intend'
)
select 'P1' as "promise!", min(id::text)::uuid as run_id,
       'start key ' || start_key || ' has ' || count(*) || ' runs' as "detail!"
from recent where start_key is not null group by start_key having count(*) > 1
union all
select 'P1', null, 'the guard of start keys is missing'
where not exists (select from pg_index where indexrelid = to_regclass('engine.run_start_key') and indisunique and indisvalid)
union all
select 'P1', r.id, 'waits for a child that was never started: ' || s.name
from recent r join step s on s.run_id = r.id and s.op = 'child' and s.state = 'waiting'
where r.state = 'waiting' and r.owner is null
  and not exists (select from engine.run c
                  where c.start_key = 'child/' || r.id || '/' || s.name || coalesce('/' || nullif(s.key, ''), ''))
union all
select 'P1', t.run_id, 'is the run of a tick of ' || t.schedule || ' and was never started'
from engine.tick t
where t.outcome in ('fired', 'by_hand') and t.at > (select engine.now()) - interval '1 hour'
  and not exists (select from engine.run r where r.id = t.run_id)
union all
select 'P2', r.id, 'is owned by a process that is dead or never was'
from recent r left join engine.incarnation i on i.id = r.owner
-- The reaper's next sweep frees them, so while processes live only those it missed count.
where r.owner is not null
  and (i.id is null or i.died_at < clock_timestamp() - case
      when exists (select from engine.incarnation where died_at is null and expires_at > clock_timestamp())
      then interval '5 seconds' else interval '0' end)
union all
select 'P2', id, 'rests as ' || state || ' and has an owner'
from recent where owner is not null and state in ('waiting', 'paused', 'stuck')
union all
select 'P2', run_id, 'an older epoch wrote after a newer one'
from (select run_id, epoch, lag(epoch) over (partition by run_id order by at, attempt) as before from tried) w
where epoch < before group by run_id
union all
select 'P2', j.run_id, 'an older epoch wrote row ' || j.seq || ' after a newer one'
from journal j join looked_into r on r.id = j.run_id where j.epoch < j.epoch_before or j.epoch > r.epoch
union all
select 'P3', run_id, 'step ' || name || '/' || key || ' succeeded ' || count(*) || ' times'
from tried where outcome in ('succeeded', 'found_done') group by run_id, name, key, undo having count(*) > 1
union all
select 'P3', run_id, 'step ' || name || '/' || key || ' was completed ' || count(*) || ' times'
from event where e in ('intend', 'settle') and state = 'succeeded' group by run_id, name, key having count(*) > 1
union all
select 'P3', s.run_id, 'step ' || s.name || '/' || s.key || ' succeeded without an output'
from step s join recent r on r.id = s.run_id where s.state = 'succeeded' and s.output is null
union all
select 'P4', a.run_id, 'step ' || a.name || '/' || a.key || ' took effect again after it was undone'
from tried a join tried b on b.run_id = a.run_id and b.name = a.name and b.key = a.key and b.undo
where not a.undo and a.outcome in ('succeeded', 'found_done') and b.outcome = 'succeeded' and a.at > b.at
union all
select 'P5', id, 'is ' || state || ' with no owner, job, timer, wait or cause'
from recent
where finished_at is null and owner is null and queued_job is null and wake_at is null and not succeeds_holder
  and not (state in ('paused', 'stuck') and cause is not null)
  and not (state in ('waiting', 'compensating') and cause in ('waiting_signal', 'waiting_for_run'))
union all
select 'P5', id, 'ended but step ' || s.name || ' is still ' || s.state
from recent r join step s on s.run_id = r.id
where r.state = 'succeeded' and s.state not in ('succeeded', 'failed')
union all
select 'P6', null, 'the guard of terminal states is missing or off'
where not exists (select 1 from pg_trigger where tgname = 'run_terminal_is_final' and tgenabled = 'O')
union all
select 'P6', j.run_id, 'went on after its end'
from journal j join looked_into r on r.id = j.run_id where j.at > r.finished_at group by j.run_id
union all
select 'P7', a.run_id, 'undo of ' || a.name || ' came before that of the later step ' || b.name
from tried a
join step sa on sa.run_id = a.run_id and sa.name = a.name and sa.key = a.key
join tried b on b.run_id = a.run_id and b.undo and b.outcome = 'succeeded'
join step sb on sb.run_id = b.run_id and sb.name = b.name and sb.key = b.key
where a.undo and a.outcome = 'succeeded' and sa.seq < sb.seq and a.at < b.at
union all
select 'P7', s.run_id, 'step ' || s.name || ' was undone in a run that did not turn back'
from step s join recent r on r.id = s.run_id
where s.state in ('compensating', 'compensated') and not r.unwinding
union all
select 'P7', run_id, count(*) || ' steps were begun in place ' || pos from begun group by run_id, pos having count(*) > 1
union all
select 'P7', b.run_id, 'step ' || b.name || ' was begun before ' || a.name || ' had ended'
from begun b join begun a on a.run_id = b.run_id and a.pos = b.pos - 1
where not exists (select from event s where s.run_id = a.run_id and s.name = a.name and s.key = a.key and s.n < b.n
                  and s.e in ('intend', 'settle') and s.state in ('succeeded', 'failed'))
union all
select 'P7', b.run_id, 'step ' || b.name || ' was begun after the run had turned back'
from begun b
where exists (select from event s where s.run_id = b.run_id and s.n < b.n and s.state in ('compensating', 'compensated'))
union all
select 'P8', r.id, 'ended ' || r.state || ' but still owes the undo of ' || s.name
from recent r join step s on s.run_id = r.id
where r.state in ('compensated', 'cancelled', 'failed') and s.undoable and s.state not in ('compensated', 'skipped')
union all
select 'P9', j.run_id, 'row ' || j.seq || ' of its journal has another correlation id'
from journal j join looked_into r on r.id = j.run_id where j.correlation_id <> r.correlation_id
union all
select 'P9', run_id, 'row ' || min(place) || ' of its journal is missing' from journal where seq <> place group by run_id
union all
select 'P9', a.run_id, 'an attempt of ' || a.name || ' has another correlation id than its run'
from tried a join looked_into r on r.id = a.run_id where a.correlation_id <> r.correlation_id
union all
select 'P9', id, 'has a correlation id of ' || length(correlation_id) || ' characters'
from recent where length(correlation_id) not between 1 and 128
union all
select 'P10', r.id, 'was paused by an operator of whom there is no record'
from recent r
where r.cause = 'paused_by_operator' and not exists (select 1 from engine.act a where a.run_id = r.id and a.act = 'pause')
union all
-- A parent cancels its child, and whoever takes a target over cancels the run that holds it.
select 'P10', r.id, 'was cancelled, of which there is no record'
from recent r
where r.state = 'cancelled' and r.parent_id is null
  and not exists (select from engine.act a where a.run_id = r.id and a.act = 'cancel')
  and not exists (select from engine.run o where o.target = r.target and o.id <> r.id and o.created_at >= r.created_at)
union all
select 'P10', a.run_id, 'an act has nobody who did it, or no correlation id: ' || a.act
from engine.act a
where (a.actor = '' or length(a.correlation_id) not between 1 and 128) and a.at >= coalesce($1::timestamptz, '-infinity')
union all
select 'P5', id, 'has an unknown word: ' || state || ', ' || coalesce(request, '-') || ', ' || coalesce(cause, '-')
from recent
where state not in ('queued', 'running', 'waiting', 'paused', 'compensating', 'succeeded', 'failed', 'compensated',
                    'cancelled', 'stuck')
   or request not in ('pause', 'cancel')
   or cause not in ('lease_lost', 'backoff', 'project_limit', 'waiting_signal', 'waiting_timer', 'paused_by_operator',
                    'retries_exhausted', 'undo_failed', 'unknown_version', 'waiting_for_run', 'database_pressure',
                    'crash_loop', 'nondeterministic')
union all
select 'P5', s.run_id, 'step ' || s.name || ' has an unknown word: ' || s.op || ', ' || s.state
from step s
where s.op not in ('activity', 'transact', 'sleep', 'wait', 'child')
   or s.state not in ('pending', 'running', 'waiting', 'succeeded', 'failed', 'ambiguous', 'skipped', 'compensating',
                      'compensated')
union all
select 'P5', id, 'rests as ' || state || ' without a cause'
from recent where state in ('waiting', 'paused', 'stuck') and owner is null and cause is null
union all
select 'P6', id, 'is ' || state || ' but not at rest'
from recent
where (finished_at is not null) <> (state in ('succeeded', 'failed', 'compensated', 'cancelled'))
   or (finished_at is not null and (owner is not null or queued_job is not null or wake_at is not null or holds_target))
