-- Runs that were seen not to advance, and whether it was told.

create table stuck_runs (
    run_id       uuid primary key,
    -- Why it does not advance; for another reason it is told anew.
    cause        text        not null,
    seen_at      timestamptz not null default engine.now(),
    -- One that is tried by itself now and then looks alive for a moment; only what was not seen for long is forgotten.
    last_seen_at timestamptz not null default engine.now(),
    told_at      timestamptz
);

-- Dead letters are counted by every scrape of the metrics.
create index webhook_deliveries_dead on webhook_deliveries (webhook_id) where status = 'failed';
