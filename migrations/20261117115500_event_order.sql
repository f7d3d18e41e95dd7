-- How far the events of each project are numbered. Whoever numbers holds the project's row, so two who do it at once do
-- it one after the other, and the second looks anew.

create table event_counters (
    project_id uuid   primary key,
    -- The number of the newest event.
    last_seq   bigint not null default 0,
    -- Up to here events were cleaned away; who resumes before it has missed some.
    forgotten  bigint not null default 0,
    check (0 <= forgotten and forgotten <= last_seq)
);

-- Readers who ask for what happened since a time.
create index outbox_by_time on outbox (project_id, at);
