-- One checkpoint per run, many runs at once: every run row moves under its guard, or nothing is written at all.
-- The guards are written so that no partial index can serve them: the rows are found by key, whatever the statistics say.
-- All-or-nothing keeps the journal's inserts free of joins with what moved; a batch with a fenced run is split.
with clock as materialized (
    select engine.now() as now
), moved as (
    update engine.run r set
        seq = r.seq + 1,
        token = m.token,
        updated_at = clock.now,
        state = coalesce(m.state, r.state),
        unwinding = r.unwinding or m.turned,
        pivoted = r.pivoted or m.pivot,
        step_deadline = m.step_deadline,
        output = coalesce(m.output::jsonb, r.output),
        error = coalesce(m.error::jsonb, r.error),
        owner = case when not m.release then r.owner end,
        queued_job = case when not m.release then r.queued_job end,
        queued_at = case when not m.release then r.queued_at end,
        wake_at = m.wake_at,
        cause = m.cause,
        cause_detail = m.detail::jsonb,
        claims = case when m.progress then 0 else r.claims end,
        -- A pause is over once the run rests; a cancel stays until the run has ended.
        request = case when m.finish or (m.clears_request and r.request = 'pause') then null else r.request end,
        holds_target = r.holds_target and not m.finish,
        succeeds_holder = r.succeeds_holder and not m.finish,
        finished_at = case when m.finish then clock.now end
    from unnest(
        $1::uuid[], $2::bigint[], $3::int[], $4::uuid[], $5::text[], $6::bool[], $7::bool[], $8::timestamptz[],
        $9::text[], $10::text[], $11::int[], $12::bool[], $13::text[], $14::text[], $15::timestamptz[], $16::bool[],
        $17::bool[], $59::bool[]
    ) as m (id, epoch, seq, token, state, turned, release, wake_at, cause, detail, seen, pivot, output, error,
            step_deadline, finish, clears_request, progress)
    cross join clock
    where r.id = m.id and r.epoch = m.epoch and r.seq = m.seq and r.owner is not distinct from $18
      and (m.seen is null or m.seen = r.signals)
    returning r.id, r.request, r.signals
), settled as (
    update engine.step s set
        state = d.state,
        attempt = d.attempt,
        undo_attempt = d.undo_attempt,
        output = coalesce(d.output::jsonb, s.output),
        error = d.error::jsonb,
        worker = $18,
        finished_at = d.finished_at
    from unnest($19::uuid[], $20::text[], $21::text[], $22::text[], $23::int[], $24::int[], $25::text[], $26::text[],
                $27::timestamptz[])
             as d (run_id, name, key, state, attempt, undo_attempt, output, error, finished_at)
    where s.run_id = d.run_id and s.name = d.name and s.key = d.key
), intended as (
    insert into engine.step (run_id, name, key, seq, op, state, undoable, attempt, input_hash, input, output, error,
                             deadline_at, started_at, finished_at, correlation_id, worker)
    select i.run_id, i.name, i.key, i.seq, i.op, i.state, i.undoable, 1, i.input_hash, i.input::jsonb, i.output::jsonb,
           i.error::jsonb, i.deadline_at, i.started_at, i.finished_at, i.correlation_id, $18
    from unnest($28::uuid[], $29::text[], $30::text[], $31::int[], $32::text[], $33::text[], $34::bool[], $35::bytea[],
                $36::text[], $37::text[], $38::text[], $39::timestamptz[], $40::timestamptz[], $41::timestamptz[],
                $42::text[])
             as i (run_id, name, key, seq, op, state, undoable, input_hash, input, output, error, deadline_at,
                   started_at, finished_at, correlation_id)
), tried as (
    insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, error, correlation_id, trace_id,
                                worker, started_at)
    select t.at, t.run_id, t.name, t.key, t.undo, t.attempt, t.outcome, t.epoch, t.error::jsonb, t.correlation_id,
           t.trace_id, $18, t.started_at
    from unnest($43::uuid[], $44::text[], $45::text[], $46::bool[], $47::int[], $48::text[], $49::text[],
                $50::timestamptz[], $51::timestamptz[], $52::bigint[], $53::text[], $54::text[])
             as t (run_id, name, key, undo, attempt, outcome, error, started_at, at, epoch, correlation_id, trace_id)
), taken as (
    update engine.signal g set state = 'taken'
    from unnest($55::uuid[], $56::text[], $57::text[]) as t (run_id, name, dedupe_key)
    where g.run_id = t.run_id and g.name = t.name and g.dedupe_key = t.dedupe_key
), dropped as (
    -- The drive is over, so its job goes in the same commit and the queue never holds finished work.
    delete from apalis.jobs where id = any($58::text[])
)
select id as "id!", request, signals as "signals!" from moved
where engine.all_moved((select count(*) from moved), cardinality($1::uuid[]))
