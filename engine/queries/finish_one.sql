-- As checkpoint.sql for a lone run that ends and has nothing else to tell, whose latency it is: plain values instead of
-- arrays, and none of the parts that would find nothing to do.
with moved as (
    update engine.run set
        updated_at = clock.now,
        state = $11,
        pivoted = pivoted or $12,
        output = coalesce($13::text::jsonb, output),
        error = coalesce($14::text::jsonb, error),
        owner = null,
        queued_job = null,
        queued_at = null,
        wake_at = null,
        cause = null,
        cause_detail = null,
        claims = 0,
        request = null,
        holds_target = false,
        succeeds_holder = false,
        finished_at = clock.now
    from (select engine.now() as now) clock
    where id = $1 and epoch = $2 and owner = $3 and not ($15 and request is not distinct from 'cancel')
    returning id, signals, updated_at
), written as (
    insert into engine.journal (run_id, seq, epoch, worker, token, at, deadline_at, progress, correlation_id, trace_id, events)
    select id, $4, $2, $3, $5, updated_at, $6, $7, $8, $9, $10::text::json from moved
)
select id as "id!", signals as "signals!" from moved
