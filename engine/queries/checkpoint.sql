-- Checkpoints of runs that turn back, rest or end, or that have more to tell than their next step, many at once. Each run
-- row moves under its guard together with its journal row; a run that is no longer ours is missing from the answer.
-- The guards are written so that no partial index can serve them: rows are found by key, whatever the statistics say.
with clock as materialized (
    select engine.now() as now
), moved as (
    update engine.run r set
        updated_at = clock.now,
        state = coalesce(m.state, r.state),
        unwinding = r.unwinding or m.turned,
        pivoted = r.pivoted or m.pivot,
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
        $1::uuid[], $2::bigint[], $4::int[], $5::uuid[], $6::timestamptz[], $7::bool[], $8::text[], $9::text[], $10::text[],
        $11::text[], $12::bool[], $13::bool[], $14::timestamptz[], $15::text[], $16::text[], $17::int[], $18::bool[],
        $19::text[], $20::text[], $21::bool[], $22::bool[], $23::text[], $24::text[], $25::text[], $26::bool[]
    ) as m (id, epoch, seq, token, deadline_at, progress, correlation_id, trace_id, events, state, turned, release, wake_at,
            cause, detail, seen, pivot, output, error, finish, clears_request, failures, taken, job, heeds_cancel)
    cross join clock
    where r.id = m.id and r.epoch = m.epoch and r.owner is not distinct from $3
      and (m.seen is null or m.seen = r.signals)
      and not (m.heeds_cancel and r.request is not distinct from 'cancel')
    returning r.id, r.request, r.signals, m.epoch, m.seq, m.token, m.deadline_at, m.progress, m.correlation_id, m.trace_id,
              m.events, m.failures, m.taken, m.job, clock.now
), written as (
    insert into engine.journal (run_id, seq, epoch, worker, token, at, deadline_at, progress, correlation_id, trace_id, events)
    select w.id, w.seq, w.epoch, $3, w.token, w.now, w.deadline_at, w.progress, w.correlation_id, w.trace_id, w.events::json
    from moved w
), failed as (
    insert into engine.attempt (at, run_id, name, key, undo, attempt, outcome, epoch, error, correlation_id, trace_id,
                                worker, started_at)
    select t.at, w.id, t.name, t.key, t.undo, t.attempt, t.outcome, w.epoch, t.error, w.correlation_id, w.trace_id, $3,
           t.started_at
    from moved w cross join lateral json_to_recordset(w.failures::json) as t (
        name text, key text, undo boolean, attempt integer, outcome text, error jsonb, started_at timestamptz,
        at timestamptz)
    where w.failures is not null
), taken as (
    update engine.signal g set state = 'taken'
    from moved w cross join lateral json_to_recordset(w.taken::json) as t (name text, dedupe_key text)
    where w.taken is not null and g.run_id = w.id and g.name = t.name and g.dedupe_key = t.dedupe_key
), dropped as (
    -- The drive is over, so its job goes in the same commit and the queue never holds finished work.
    delete from apalis.jobs where id = any($25::text[]) and id in (select job from moved)
)
select id as "id!", request, signals as "signals!" from moved
