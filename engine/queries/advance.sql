-- The common checkpoint: the drivers go on. As checkpoint.sql, without the columns and tables that only change when a
-- run turns back, comes to rest or ends; it is most of what the engine writes.
with moved as (
    update engine.run r set
        seq = r.seq + 1,
        token = m.token,
        updated_at = engine.now(),
        pivoted = r.pivoted or m.pivot,
        step_deadline = m.step_deadline,
        claims = case when m.progress then 0 else r.claims end
    from unnest($1::uuid[], $2::bigint[], $3::int[], $4::uuid[], $5::bool[], $6::timestamptz[], $44::bool[])
             as m (id, epoch, seq, token, pivot, step_deadline, progress)
    where r.id = m.id and r.epoch = m.epoch and r.seq = m.seq and r.owner is not distinct from $7
    returning r.id, r.request, r.signals
), settled as (
    update engine.step s set
        state = d.state,
        attempt = d.attempt,
        undo_attempt = d.undo_attempt,
        output = coalesce(d.output::jsonb, s.output),
        error = d.error::jsonb,
        worker = $7,
        finished_at = d.finished_at
    from unnest($8::uuid[], $9::text[], $10::text[], $11::text[], $12::int[], $13::int[], $14::text[], $15::text[],
                $16::timestamptz[])
             as d (run_id, name, key, state, attempt, undo_attempt, output, error, finished_at)
    where s.run_id = d.run_id and s.name = d.name and s.key = d.key
), intended as (
    insert into engine.step (run_id, name, key, seq, op, state, undoable, attempt, input_hash, input, output, error,
                             deadline_at, started_at, finished_at, correlation_id, worker)
    select i.run_id, i.name, i.key, i.seq, i.op, i.state, i.undoable, 1, i.input_hash, i.input::jsonb, i.output::jsonb,
           i.error::jsonb, i.deadline_at, i.started_at, i.finished_at, i.correlation_id, $7
    from unnest($17::uuid[], $18::text[], $19::text[], $20::int[], $21::text[], $22::text[], $23::bool[], $24::bytea[],
                $25::text[], $26::text[], $27::text[], $28::timestamptz[], $29::timestamptz[], $30::timestamptz[],
                $31::text[])
             as i (run_id, name, key, seq, op, state, undoable, input_hash, input, output, error, deadline_at,
                   started_at, finished_at, correlation_id)
), tried as (
    insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, error, correlation_id, trace_id,
                                worker, started_at)
    select t.at, t.run_id, t.name, t.key, t.undo, t.attempt, t.outcome, t.epoch, t.error::jsonb, t.correlation_id,
           t.trace_id, $7, t.started_at
    from unnest($32::uuid[], $33::text[], $34::text[], $35::bool[], $36::int[], $37::text[], $38::text[],
                $39::timestamptz[], $40::timestamptz[], $41::bigint[], $42::text[], $43::text[])
             as t (run_id, name, key, undo, attempt, outcome, error, started_at, at, epoch, correlation_id, trace_id)
)
select id as "id!", request, signals as "signals!" from moved
where engine.all_moved((select count(*) from moved), cardinality($1::uuid[]))
