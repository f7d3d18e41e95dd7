-- A past for the database: `bench.runs` finished runs of ten steps over the last week, one try per step and a
-- failed one before it for every twentieth, spread over 200 projects. One run in fifty unwound; the rest succeeded.
-- Ids rise with time, as those of real runs do, and attempts lie in a partition per day.

do $$
declare
    day date;
begin
    for day in select generate_series(now()::date - 7, now()::date - 1, interval '1 day')::date loop
        execute format('create table engine.%I partition of engine.attempt for values from (%L) to (%L)',
            'attempt_' || to_char(day, 'YYYYMMDD'), day::timestamp at time zone 'UTC',
            (day + 1)::timestamp at time zone 'UTC');
    end loop;
end $$;

create temporary table past as
select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid as id,
       ('00000000-0000-4000-8000-' || lpad(to_hex(n % 200), 12, '0'))::uuid as project_id,
       n, at, n % 50 = 0 as unwound
from (select n, now() - interval '1 day' - interval '6 days' * (1 - n::float8 / current_setting('bench.runs')::int) as at
      from generate_series(1, current_setting('bench.runs')::int) n) numbered;

insert into engine.incarnation (id, name, slots, started_at, expires_at, died_at)
values ('00000000-0000-7000-8000-000000000001', 'a-past-process', 256, now() - interval '8 days', now() - interval '1 day',
        now() - interval '1 day');

insert into engine.run (id, kind, version, project_id, correlation_id, target, state, unwinding, input, output, error, epoch,
                        claims, created_at, started_at, updated_at, finished_at)
select id, 'bench.ten_steps', 1, project_id, 'history-' || n, 'instance/' || n % 5000,
       case when unwound then 'compensated' else 'succeeded' end, unwound, jsonb_build_object('payload', repeat(md5(n::text), 7)),
       null, case when unwound then '{"code": "impossible", "message": "the world says no"}'::jsonb end, 1, 1,
       at, at, at + interval '2 seconds', at + interval '2 seconds'
from past;

-- Row k of a run's journal says that step k - 1 is done and step k begun; the last row ends the run.
insert into engine.journal (run_id, seq, epoch, worker, token, at, progress, correlation_id, events)
select p.id, k, 1, '00000000-0000-7000-8000-000000000001', p.id, p.at + interval '200 ms' * k, true, 'history-' || p.n,
       (select json_agg(event) from (values
           (case when k > 0 then json_build_object(
               'e', 'settle', 'name', done.name, 'key', done.key, 'state', 'succeeded', 'attempt', done.attempt, 'undo_attempt', 0,
               'output', json_build_object('payload', repeat(md5(k::text), 7)), 'finished_at', p.at + interval '200 ms' * k) end),
           (case when k > 0 then json_build_object(
               'e', 'tried', 'name', done.name, 'key', done.key, 'undo', false, 'attempt', done.attempt, 'outcome', 'succeeded',
               'started_at', p.at + interval '200 ms' * (k - 1), 'at', p.at + interval '200 ms' * k) end),
           (case when k < 10 then json_build_object(
               'e', 'intend', 'name', next.name, 'key', next.key, 'pos', k, 'op', 'activity', 'state', 'running', 'undoable', k < 3,
               'hash', md5(k::text), 'input', json_build_object('payload', repeat(md5(p.n::text), 7)),
               'started_at', p.at + interval '200 ms' * k) end)) v (event) where event is not null)
from past p cross join generate_series(0, 10) k
cross join lateral (select case when k < 4 then 'hold' else 'echo' end as name, (k - 1)::text as key,
                           case when (p.n + k) % 20 = 0 then 2 else 1 end as attempt) done
cross join lateral (select case when k < 3 then 'hold' else 'echo' end as name, k::text as key) next;

-- The undos of the runs that unwound, as one row each.
insert into engine.journal (run_id, seq, epoch, worker, token, at, progress, correlation_id, events)
select p.id, 11, 1, '00000000-0000-7000-8000-000000000001', p.id, p.at + interval '3 seconds', true, 'history-' || p.n,
       (select json_agg(event order by k desc, event ->> 'e') from generate_series(0, 2) k cross join lateral (values
           (json_build_object('e', 'settle', 'name', 'hold', 'key', k::text, 'state', 'compensated', 'attempt', 1,
               'undo_attempt', 1, 'finished_at', p.at + interval '3 seconds' - interval '300 ms' * k)),
           (json_build_object('e', 'tried', 'name', 'hold', 'key', k::text, 'undo', true, 'attempt', 1, 'outcome', 'succeeded',
               'started_at', p.at + interval '2 seconds', 'at', p.at + interval '3 seconds' - interval '300 ms' * k))) v (event))
from past p where p.unwound;

-- The tries that failed before the step succeeded.
insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, correlation_id, worker, started_at)
select p.at + interval '200 ms' * k - interval '50 ms', p.id, case when k < 4 then 'hold' else 'echo' end, (k - 1)::text, false, 1,
       'retry', 1, 'history-' || p.n, '00000000-0000-7000-8000-000000000001', p.at + interval '200 ms' * (k - 1)
from past p cross join generate_series(1, 10) k where (p.n + k) % 20 = 0;

drop table past;

-- And what is not over: ten thousand runs that wait for a word, and a hundred that wait for a person.
insert into engine.run (id, kind, version, project_id, correlation_id, state, cause, input, epoch, created_at, updated_at)
select (lpad(to_hex((extract(epoch from now() - interval '8 days') * 1000)::bigint + n), 12, '0') || '7' || substr(md5(n::text), 1, 3)
        || '8' || substr(md5(n::text), 4, 15))::uuid, 'bench.ten_steps', 1, ('00000000-0000-4000-8000-' || lpad(to_hex(n % 200), 12, '0'))::uuid,
       'waiting-' || n, case when n % 101 = 0 then 'paused' else 'waiting' end,
       case when n % 101 = 0 then 'retries_exhausted' else 'waiting_signal' end, '{"payload": ""}', 1, now() - interval '8 days', now() - interval '8 days'
from generate_series(1, 10100) n;
