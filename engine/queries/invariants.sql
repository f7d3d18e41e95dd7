-- With $1, what lives or ended since then, the latest thousand of each and the journals of the latest hundred of each,
-- so that looking stays cheap under load; without, everything.
with recent as materialized (
    select *, row_number() over (order by id desc) as place
    from (select * from engine.run where finished_at is null
          order by id desc limit case when $1::timestamptz is not null then 1000 end) live
    union all
    select *, row_number() over (order by finished_at desc)
    from (select * from engine.run where finished_at >= coalesce($1::timestamptz, '-infinity')
          order by finished_at desc limit case when $1::timestamptz is not null then 1000 end) ended
), looked_into as materialized (
    select id from recent where $1::timestamptz is null or place <= 100
), step as materialized (
    select r.id as run_id, s.* from looked_into r cross join lateral engine.steps_of(r.id) s
), tried as materialized (
    select r.id as run_id, t.* from looked_into r cross join lateral engine.tries_of(r.id) t
)
select 'P1' as "promise!", min(id::text)::uuid as run_id,
       'start key ' || start_key || ' has ' || count(*) || ' runs' as "detail!"
from recent where start_key is not null group by start_key having count(*) > 1
union all
select 'P2', r.id, 'is owned by a process that is dead or never was'
from recent r left join engine.incarnation i on i.id = r.owner
-- The reaper's next sweep frees them, so while processes live only those it missed count.
where r.owner is not null
  and (i.id is null or i.died_at < clock_timestamp() - case
      when exists (select from engine.incarnation where died_at is null and expires_at > clock_timestamp())
      then interval '5 seconds' else interval '0' end)
union all
select 'P2', run_id, 'an older epoch wrote after a newer one'
from (select run_id, epoch, lag(epoch) over (partition by run_id order by at, attempt) as before from tried) w
where epoch < before group by run_id
union all
select 'P3', run_id, 'step ' || name || '/' || key || ' succeeded ' || count(*) || ' times'
from tried where outcome in ('succeeded', 'found_done') group by run_id, name, key, undo having count(*) > 1
union all
select 'P3', s.run_id, 'step ' || s.name || '/' || s.key || ' succeeded without an output'
from step s join recent r on r.id = s.run_id where s.state = 'succeeded' and s.output is null
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
select 'P8', r.id, 'ended ' || r.state || ' but still owes the undo of ' || s.name
from recent r join step s on s.run_id = r.id
where r.state in ('compensated', 'cancelled', 'failed') and s.undoable and s.state not in ('compensated', 'skipped')
union all
select 'P9', s.run_id, 'step ' || s.name || ' has another correlation id than its run'
from step s join recent r on r.id = s.run_id where s.correlation_id <> r.correlation_id
union all
select 'P9', a.run_id, 'an attempt of ' || a.name || ' has another correlation id than its run'
from tried a join recent r on r.id = a.run_id where a.correlation_id <> r.correlation_id
union all
select 'P10', r.id, 'was paused by an operator of whom there is no record'
from recent r
where r.cause = 'paused_by_operator' and not exists (select 1 from engine.act a where a.run_id = r.id and a.act = 'pause')
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
from step s join recent r on r.id = s.run_id
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
union all
select 'P9', id, 'has a correlation id of ' || length(correlation_id) || ' characters'
from recent where length(correlation_id) not between 1 and 128
