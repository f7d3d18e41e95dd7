-- A past for the database: `bench.runs` finished runs of ten steps over the last week, one attempt per step and a
-- second one for every twentieth, spread over 200 projects. One run in fifty unwound; the rest succeeded.
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
                        seq, token, claims, created_at, started_at, updated_at, finished_at)
select id, 'bench.ten_steps', 1, project_id, 'history-' || n, 'instance/' || n % 5000,
       case when unwound then 'compensated' else 'succeeded' end, unwound, jsonb_build_object('payload', repeat(md5(n::text), 7)),
       null, case when unwound then '{"code": "impossible", "message": "the world says no"}'::jsonb end, 1, 12, id, 1,
       at, at, at + interval '2 seconds', at + interval '2 seconds'
from past;

insert into engine.step (run_id, name, key, seq, op, state, undoable, attempt, undo_attempt, input_hash, input, output,
                         correlation_id, worker, started_at, finished_at)
select p.id, case when k < 3 then 'hold' else 'echo' end, k::text, k, 'activity',
       case when p.unwound and k < 3 then 'compensated' else 'succeeded' end, k < 3,
       case when (p.n + k) % 20 = 0 then 2 else 1 end, case when p.unwound and k < 3 then 1 else 0 end,
       decode(md5(k::text), 'hex'), jsonb_build_object('payload', repeat(md5(p.n::text), 7)),
       jsonb_build_object('payload', repeat(md5(k::text), 7)), 'history-' || p.n, '00000000-0000-7000-8000-000000000001',
       p.at + interval '200 ms' * k, p.at + interval '200 ms' * k + interval '100 ms'
from past p cross join generate_series(0, 9) k;

insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, correlation_id, worker, started_at)
select s.started_at + interval '50 ms' * tried.attempt, s.run_id, s.name, s.key, false, tried.attempt,
       case when tried.attempt = s.attempt then 'succeeded' else 'retry' end, 1, s.correlation_id, s.worker, s.started_at
from engine.step s cross join lateral generate_series(1, s.attempt) tried (attempt);

insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, correlation_id, worker, started_at)
select s.started_at + interval '2 seconds' - interval '300 ms' * s.seq, s.run_id, s.name, s.key, true, 1, 'succeeded', 1,
       s.correlation_id, s.worker, s.started_at
from engine.step s where s.undo_attempt > 0;

drop table past;
