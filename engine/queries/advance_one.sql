-- As advance.sql for a lone run, whose latency it is: plain values instead of arrays.
with held as (
    select r.id, r.request, r.signals from engine.run r where r.id = $1 and r.epoch = $2 and r.owner = $3 for share
), written as (
    insert into engine.journal (run_id, seq, epoch, worker, token, at, deadline_at, progress, correlation_id, trace_id, events)
    select held.id, $4, $2, $3, $5, engine.now(), $6, $7, $8, $9, $10::text::json from held
)
select id as "id!", request, signals as "signals!" from held
