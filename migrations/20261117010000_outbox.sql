-- Events, written in the transaction of the change they tell of. A writer gives no sequence number: the order in which
-- transactions become visible is not the order in which they insert. A sequencer numbers what is visible, project by
-- project; readers resume by that number, so it has no gaps.

create table outbox (
    -- The event's own id, by which receivers know a repetition.
    id             uuid primary key,
    -- The nil id for what happens on the platform itself.
    project_id     uuid        not null,
    org_id         uuid,
    -- The order of inserting. What was committed before another transaction inserted comes first here, so numbering what
    -- is visible by it keeps causes before their effects.
    pos            bigint      not null generated always as identity,
    seq            bigint      check (seq > 0),
    type           text        not null,
    subject        text        not null,
    data           jsonb       not null,
    correlation_id text        not null check (length(correlation_id) between 1 and 128),
    traceparent    text,
    at             timestamptz not null default engine.now(),
    unique (project_id, seq)
);
create index outbox_unnumbered on outbox (project_id, pos) where seq is null;
create index outbox_by_correlation on outbox (correlation_id);

-- What happened stays as it was told; only its number comes later, once.
create function refuse_change_of_event() returns trigger language plpgsql as $$
begin
    if old.seq is not null or (to_jsonb(new) - 'seq') is distinct from (to_jsonb(old) - 'seq') then
        raise exception 'event % was told already', old.id using errcode = 'insufficient_privilege';
    end if;
    return new;
end $$;
create trigger outbox_is_told_once before update on outbox
    for each row execute function refuse_change_of_event();
