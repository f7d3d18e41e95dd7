-- One run of `bench.steps` steps in the example project, at rest between the last two of them. Every tenth step was tried
-- twice. It is paused, so that nobody drives it while its page is measured, and that page still ticks.

create temporary table long as
select '01970000-0000-7000-8000-00000000f500'::uuid as id, now() - interval '1 hour' as at,
       current_setting('bench.steps')::int as steps;

insert into engine.incarnation (id, name, slots, started_at, expires_at, died_at)
values ('00000000-0000-7000-8000-000000000001', 'a-past-process', 256, now() - interval '8 days', now() - interval '1 day',
        now() - interval '1 day')
on conflict do nothing;

insert into engine.run (id, kind, version, project_id, correlation_id, target, state, unwinding, input, epoch, claims,
                        created_at, started_at, updated_at)
select id, 'bench.long', 1, '01970000-0000-7000-8000-000000000002', 'long-run', 'instance/long', 'paused', false,
       '{"payload": "long"}', 1, 1, at, at, at + interval '200 ms' * steps
from long;

insert into engine.journal (run_id, seq, epoch, worker, token, at, progress, correlation_id, events)
select l.id, k, 1, '00000000-0000-7000-8000-000000000001', l.id, l.at + interval '200 ms' * k, true, 'long-run',
       (select json_agg(event) from (values
           (case when k > 0 then json_build_object(
               'e', 'settle', 'name', 'echo', 'key', (k - 1)::text, 'state', 'succeeded', 'attempt', tried.times,
               'undo_attempt', 0, 'output', json_build_object('payload', repeat(md5(k::text), 7)),
               'finished_at', l.at + interval '200 ms' * k) end),
           (case when k > 0 then json_build_object(
               'e', 'tried', 'name', 'echo', 'key', (k - 1)::text, 'undo', false, 'attempt', tried.times,
               'outcome', 'succeeded', 'started_at', l.at + interval '200 ms' * k - interval '90 ms',
               'at', l.at + interval '200 ms' * k) end),
           (case when k < l.steps then json_build_object(
               'e', 'intend', 'name', 'echo', 'key', k::text, 'pos', k, 'op', 'activity', 'state', 'running',
               'undoable', k % 3 = 0, 'hash', md5(k::text), 'input', json_build_object('payload', repeat(md5(k::text), 7)),
               'started_at', l.at + interval '200 ms' * k) end)) v (event) where event is not null)
from long l cross join lateral generate_series(0, l.steps) k
cross join lateral (select case when k % 10 = 0 then 2 else 1 end as times) tried;

-- The tries that failed before the step succeeded.
insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, correlation_id, worker, started_at)
select l.at + interval '200 ms' * k - interval '110 ms', l.id, 'echo', (k - 1)::text, false, 1, 'retry', 1, 'long-run',
       '00000000-0000-7000-8000-000000000001', l.at + interval '200 ms' * (k - 1)
from long l cross join lateral generate_series(10, l.steps, 10) k;

drop table long;
