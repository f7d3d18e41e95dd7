-- Checkpoints of runs that go on, many at once: one journal row each. Their run rows are only locked, which is what a
-- new owner, an operator or a signal has to wait for; a run that is no longer ours is missing from the answer.
-- The guards are written so that no partial index can serve them: rows are found by key, whatever the statistics say.
with held as materialized (
    select r.id, r.request, r.signals, m.epoch, m.seq, m.token, m.deadline_at, m.progress, m.correlation_id, m.trace_id,
           m.events
    from unnest($1::uuid[], $2::bigint[], $4::int[], $5::uuid[], $6::timestamptz[], $7::bool[], $8::text[], $9::text[],
                $10::text[])
             as m (id, epoch, seq, token, deadline_at, progress, correlation_id, trace_id, events)
    join engine.run r on r.id = m.id and r.epoch = m.epoch and r.owner is not distinct from $3
    for share of r
), written as (
    insert into engine.journal (run_id, seq, epoch, worker, token, at, deadline_at, progress, correlation_id, trace_id, events)
    select h.id, h.seq, h.epoch, $3, h.token, clock.now, h.deadline_at, h.progress, h.correlation_id, h.trace_id,
           h.events::json
    from held h cross join (select engine.now() as now) clock
)
select id as "id!", request, signals as "signals!" from held
