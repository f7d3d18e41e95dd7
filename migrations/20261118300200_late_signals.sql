-- Signals that nobody took are late once their run has ended: few are kept at a time, and those are found here.
create index signal_kept on engine.signal (run_id) where state = 'kept';

-- A step says which trace it belongs to, as its run and its attempts do.
drop view engine.step;
drop function engine.steps_of(uuid);
create function engine.steps_of(run uuid) returns table (
    name text, key text, seq integer, op text, state text, undoable boolean, attempt integer, attempt_base integer,
    undo_attempt integer, undo_base integer, input_hash bytea, input jsonb, output jsonb, error jsonb,
    deadline_at timestamptz, correlation_id text, trace_id text, worker uuid, started_at timestamptz, finished_at timestamptz
) language sql stable parallel safe as $$
    select e.name, e.key, min(e.pos), min(e.op), (array_agg(e.state order by n desc))[1], coalesce(bool_or(e.undoable), false),
           coalesce((array_agg(e.attempt order by n desc) filter (where e.attempt is not null))[1], 1),
           coalesce((array_agg(e.attempt_base order by n desc) filter (where e.attempt_base is not null))[1], 0),
           coalesce((array_agg(e.undo_attempt order by n desc) filter (where e.undo_attempt is not null))[1], 0),
           coalesce((array_agg(e.undo_base order by n desc) filter (where e.undo_base is not null))[1], 0),
           decode(min(e.hash), 'hex'), (array_agg(e.event -> 'input' order by n))[1],
           (array_agg(e.event -> 'output' order by n desc) filter (where e.event ? 'output'))[1],
           (array_agg(e.event -> 'error' order by n desc))[1], min(e.deadline_at), min(e.correlation_id), min(e.trace_id),
           (array_agg(e.worker order by n desc))[1], min(e.started_at), (array_agg(e.finished_at order by n desc))[1]
    from (
        select j.correlation_id, j.trace_id, j.worker, row_number() over (order by j.seq, o.n) as n, o.event, d.*
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
