-- The durable engine's own tables. They are the truth about every run; `apalis.jobs` only says which runs
-- a worker should pick up next.

create schema if not exists engine;

-- All timers follow this clock. Tests replace the function with one that adds an offset.
-- Compare columns with `(select engine.now())`: a bare volatile call cannot be an index bound.
create function engine.now() returns timestamptz
    language sql volatile parallel safe as 'select clock_timestamp()';

-- One row per process start. The lease belongs to the process, not to a run; a dead row never revives.
-- Leases follow clock_timestamp() itself: they are about living processes, which no test clock moves.
create table engine.incarnation (
    id          uuid primary key,
    name        text        not null unique,
    slots       integer     not null check (slots >= 0),
    started_at  timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null,
    died_at     timestamptz
);
create index incarnation_living on engine.incarnation (expires_at) where died_at is null;

-- Which workflow definitions a living process can drive.
create table engine.capability (
    incarnation_id uuid    not null references engine.incarnation on delete cascade,
    kind           text    not null,
    version        integer not null,
    primary key (kind, version, incarnation_id)
);

-- The hot tables have no CHECK constraints: Postgres builds those anew for every statement, which made a lone
-- checkpoint half as dear again. Their words come from Rust enums, and `queries/invariants.sql` checks every row.
create table engine.run (
    id              uuid primary key,
    kind            text        not null,
    version         integer     not null,
    org_id          uuid,
    -- The nil uuid stands for the platform itself, so that fairness has one rule.
    project_id      uuid        not null,
    correlation_id  text        not null,
    trace_id        text,
    start_key       text,
    target          text,
    holds_target    boolean     not null default false,
    succeeds_holder boolean     not null default false,
    parent_id       uuid,
    parent_step     text,
    retry_of        uuid,
    -- A stuck holder whose remaining undos this run took over.
    inherits        uuid,
    state           text        not null default 'queued',
    -- True once the run has turned back: claims then replay and undo instead of going on.
    unwinding       boolean     not null default false,
    -- True past the point of no return.
    pivoted         boolean     not null default false,
    input           jsonb       not null,
    output          jsonb,
    error           jsonb,
    -- Ownership. Every write by a driver is guarded by (owner, epoch) here and by its position in the journal.
    epoch           bigint      not null default 0,
    owner           uuid,
    -- Finds a claim again whose answer was lost.
    token           uuid,
    -- Claims since the journal last got further, and how long it was at the last one.
    claims          integer     not null default 0,
    claimed_at_seq  integer     not null default 0,
    -- Admission: the apalis job that will drive this run, or the time at which it wants one.
    queued_job      text,
    queued_at       timestamptz,
    wake_at         timestamptz,
    signals         integer     not null default 0,
    -- What an operator asks of the driver; `cancelling` stays true once a cancel was accepted.
    request         text,
    cancelling      boolean     not null default false,
    -- Why the run does not advance, from the contract's closed list.
    cause           text,
    cause_detail    jsonb,
    created_at      timestamptz not null default engine.now(),
    started_at      timestamptz,
    updated_at      timestamptz not null default engine.now(),
    finished_at     timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.1);

create unique index run_start_key on engine.run (start_key) where start_key is not null;
create unique index run_target_holder on engine.run (target) where holds_target;
create unique index run_target_successor on engine.run (target) where succeeds_holder;
create index run_owner on engine.run (owner) where owner is not null;
create index run_admitted on engine.run (project_id) where queued_job is not null;
create index run_wake on engine.run (wake_at) where wake_at is not null;
create index run_wake_by_project on engine.run (project_id, wake_at) where wake_at is not null;
create index run_request on engine.run (owner) where request is not null;
create index run_by_project on engine.run (project_id, id);
create index run_finished on engine.run (finished_at) where finished_at is not null;
create index run_live on engine.run (id) where finished_at is null;
create index run_troubled on engine.run (state, id) where state in ('paused', 'stuck', 'failed', 'compensated', 'cancelled');
create index run_by_kind on engine.run (kind, id);
create index run_by_age on engine.run using brin (created_at) with (pages_per_range = 16);
create index run_by_correlation on engine.run (correlation_id);
create index run_by_target on engine.run (target, id) where target is not null;
create index run_by_parent on engine.run (parent_id) where parent_id is not null;

-- P6: a terminal state never changes, whoever asks.
create function engine.refuse_change_of_terminal_run() returns trigger language plpgsql as $$
begin
    raise exception 'run % is % and can no longer change', old.id, old.state using errcode = 'check_violation';
end $$;
create trigger run_terminal_is_final before update on engine.run
    for each row when (old.finished_at is not null) execute function engine.refuse_change_of_terminal_run();

-- The journal: one row per checkpoint, holding what was done and what comes next, so that a checkpoint is a single
-- insert and the primary key fences by position. Steps and tries are read through the views below. There is no foreign
-- key to the run on purpose: rows are written only under the lock of their run.
create table engine.journal (
    run_id         uuid        not null,
    -- The position of a run is the number of its rows here.
    seq            integer     not null,
    epoch          bigint      not null,
    worker         uuid,
    -- Tells this write from any other when the connection dies between COMMIT and its answer.
    token          uuid        not null,
    at             timestamptz not null,
    -- When the step begun here counts as lost.
    deadline_at    timestamptz,
    -- False where the run only began the same step once more, so that a crash loop is noticed.
    progress       boolean     not null,
    correlation_id text        not null,
    trace_id       text,
    -- intend: an operation was begun. settle: its state changed; either tells the outcome of the try that led to it.
    -- tried: a try that succeeded, where neither does.
    -- Plain json: written once per step, taken apart only when somebody looks.
    events         json        not null,
    primary key (run_id, seq)
) with (autovacuum_vacuum_insert_scale_factor = 1);

-- Tries that did not succeed, forward and undo; those that did are in the journal. Replay never reads this, so old days
-- can be dropped.
create table engine.attempt (
    at             timestamptz not null,
    run_id         uuid        not null,
    name           text        not null,
    key            text        not null,
    undo           boolean     not null,
    attempt        integer     not null,
    outcome        text        not null,
    epoch          bigint      not null,
    error          jsonb,
    correlation_id text        not null,
    trace_id       text,
    worker         uuid        not null,
    started_at     timestamptz not null
) partition by range (at);
create index attempt_by_run on engine.attempt (run_id);
create table engine.attempt_default partition of engine.attempt default;

-- The steps of one run, folded from its journal: the first entry says what a step is, the last how it stands.
create function engine.steps_of(run uuid) returns table (
    name text, key text, seq integer, op text, state text, undoable boolean, attempt integer, attempt_base integer,
    undo_attempt integer, undo_base integer, input_hash bytea, input jsonb, output jsonb, error jsonb,
    deadline_at timestamptz, correlation_id text, worker uuid, started_at timestamptz, finished_at timestamptz
) language sql stable parallel safe as $$
    select e.name, e.key, min(e.pos), min(e.op), (array_agg(e.state order by n desc))[1], coalesce(bool_or(e.undoable), false),
           coalesce((array_agg(e.attempt order by n desc) filter (where e.attempt is not null))[1], 1),
           coalesce((array_agg(e.attempt_base order by n desc) filter (where e.attempt_base is not null))[1], 0),
           coalesce((array_agg(e.undo_attempt order by n desc) filter (where e.undo_attempt is not null))[1], 0),
           coalesce((array_agg(e.undo_base order by n desc) filter (where e.undo_base is not null))[1], 0),
           decode(min(e.hash), 'hex'), (array_agg(e.event -> 'input' order by n))[1],
           (array_agg(e.event -> 'output' order by n desc) filter (where e.event ? 'output'))[1],
           (array_agg(e.event -> 'error' order by n desc))[1], min(e.deadline_at), min(e.correlation_id),
           (array_agg(e.worker order by n desc))[1], min(e.started_at), (array_agg(e.finished_at order by n desc))[1]
    from (
        select j.correlation_id, j.worker, row_number() over (order by j.seq, o.n) as n, o.event, d.*
        from engine.journal j
        cross join lateral jsonb_array_elements(j.events::jsonb) with ordinality as o (event, n)
        cross join lateral jsonb_to_record(o.event) as d (
            e text, name text, key text, pos integer, op text, state text, undoable boolean, attempt integer,
            attempt_base integer, undo_attempt integer, undo_base integer, hash text,
            deadline_at timestamptz, started_at timestamptz, finished_at timestamptz)
        where j.run_id = run and d.e in ('intend', 'settle')
    ) e
    group by e.name, e.key
$$;

create view engine.step as
select r.id as run_id, s.* from engine.run r cross join lateral engine.steps_of(r.id) s;

-- Every try of the steps of one run. Those that did not succeed go with their day.
create function engine.tries_of(run uuid) returns table (
    name text, key text, undo boolean, attempt integer, outcome text, epoch bigint, error jsonb, correlation_id text,
    trace_id text, worker uuid, started_at timestamptz, at timestamptz
) language sql stable parallel safe as $$
    select t.name, t.key, t.undo, t.attempt, t.outcome, t.epoch, t.error, t.correlation_id, t.trace_id, t.worker,
           t.started_at, t.at
    from engine.attempt t where t.run_id = run
    union all
    select d.name, d.key, coalesce(d.undo, false), coalesce(case when d.undo and d.e = 'settle' then d.undo_attempt else d.attempt end, 1),
           d.outcome, j.epoch, null, j.correlation_id, j.trace_id, j.worker, coalesce(d.began_at, d.started_at),
           coalesce(d.at, d.finished_at)
    from engine.journal j cross join lateral json_to_recordset(j.events) as d (
        e text, name text, key text, undo boolean, attempt integer, undo_attempt integer, outcome text,
        began_at timestamptz, started_at timestamptz, at timestamptz, finished_at timestamptz)
    where j.run_id = run and d.outcome is not null
$$;

create view engine.try as
select r.id as run_id, t.* from engine.run r cross join lateral engine.tries_of(r.id) t;

-- Signals are kept until taken; the run's `signals` counter is what a suspending driver compares.
create table engine.signal (
    run_id     uuid        not null,
    name       text        not null,
    dedupe_key text        not null,
    payload    jsonb       not null,
    state      text        not null default 'kept' check (state in ('kept', 'taken', 'late')),
    created_at timestamptz not null default engine.now(),
    primary key (run_id, name, dedupe_key)
);

create table engine.schedule (
    name        text primary key,
    kind        text        not null,
    version     integer     not null,
    cron        text        not null,
    input       jsonb       not null default '{}',
    missed      text        not null check (missed in ('skip', 'one', 'all')),
    overlap     text        not null check (overlap in ('skip', 'queue')),
    paused      boolean     not null default false,
    next_at     timestamptz not null,
    last_at     timestamptz,
    last_run_id uuid
);
-- Each nominal tick fires once, whichever replica wakes first.
create table engine.tick (
    schedule text        not null references engine.schedule on delete cascade,
    nominal  timestamptz not null,
    run_id   uuid,
    outcome  text        not null check (outcome in ('fired', 'skipped_overlap', 'missed', 'by_hand')),
    at       timestamptz not null default engine.now(),
    primary key (schedule, nominal)
);

-- What operators asked of runs and schedules.
create table engine.act (
    id             uuid primary key,
    run_id         uuid,
    schedule       text,
    act            text        not null,
    actor          text        not null,
    reason         text,
    correlation_id text        not null,
    at             timestamptz not null default engine.now()
);
create index act_by_run on engine.act (run_id);

-- Partitions are made and dropped by the owner on behalf of the serving role, which has no DDL.
create function engine.make_partitions(days_ahead integer) returns integer
    language plpgsql security definer set search_path = engine, pg_temp as $$
declare
    day  date;
    made integer := 0;
begin
    for day in select generate_series(engine.now()::date, engine.now()::date + days_ahead, interval '1 day')::date loop
        if to_regclass('engine.attempt_' || to_char(day, 'YYYYMMDD')) is null then
            begin
                execute format('create table engine.%I partition of engine.attempt for values from (%L) to (%L)',
                    'attempt_' || to_char(day, 'YYYYMMDD'), day::timestamp at time zone 'UTC',
                    (day + 1)::timestamp at time zone 'UTC');
                made := made + 1;
            exception
                -- Another process made it first, or rows of that day already sit in the default partition.
                when duplicate_table or check_violation then null;
            end;
        end if;
    end loop;
    return made;
end $$;

create function engine.drop_partitions(keep_days integer) returns integer
    language plpgsql security definer set search_path = engine, pg_temp as $$
declare
    part    text;
    dropped integer := 0;
begin
    set local lock_timeout = '100ms';
    for part in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'engine.attempt'::regclass and c.relname ~ '^attempt_\d{8}$'
          and to_date(right(c.relname, 8), 'YYYYMMDD') < engine.now()::date - keep_days
    loop
        execute format('drop table engine.%I', part);
        dropped := dropped + 1;
    end loop;
    return dropped;
end $$;

select engine.make_partitions(7);
