-- As advance.sql for a lone run, whose latency it is: plain values instead of arrays, which halves its cost.
-- Everything hangs on `moved`, so nothing is written when the guard does not hold.
with moved as (
    update engine.run r set
        seq = r.seq + 1,
        token = $4,
        updated_at = engine.now(),
        pivoted = r.pivoted or $5,
        step_deadline = $6,
        claims = case when $7 then 0 else r.claims end
    where r.id = $1 and r.epoch = $2 and r.seq = $3 and r.owner is not distinct from $8
    returning r.id, r.request, r.signals
), settled as (
    update engine.step s set
        state = $11,
        attempt = $12,
        undo_attempt = $13,
        output = coalesce($14::text::jsonb, s.output),
        error = $15::text::jsonb,
        worker = $8,
        finished_at = $16
    from moved where s.run_id = moved.id and s.name = $9 and s.key = $10
), intended as (
    insert into engine.step (run_id, name, key, seq, op, state, undoable, attempt, input_hash, input, output, error,
                             deadline_at, started_at, finished_at, correlation_id, worker)
    select moved.id, $17, $18, $19, $20, $21, $22, 1, $23, $24::text::jsonb, $25::text::jsonb, $26::text::jsonb, $27,
           $28, $29, $30, $8
    from moved where $17::text is not null
), tried as (
    insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, error, correlation_id, trace_id,
                                worker, started_at)
    select t.at, moved.id, t.name, t.key, t.undo, t.attempt, t.outcome, $2, t.error::jsonb, $30, $31, $8, t.started_at
    from moved cross join (values
        ($32::timestamptz, $33::text, $34::text, $35::boolean, $36::int, $37::text, $38::text, $39::timestamptz),
        ($40::timestamptz, $41::text, $42::text, $43::boolean, $44::int, $45::text, $46::text, $47::timestamptz)
    ) as t (at, name, key, undo, attempt, outcome, error, started_at)
    where t.name is not null
)
select id as "id!", request, signals as "signals!" from moved
