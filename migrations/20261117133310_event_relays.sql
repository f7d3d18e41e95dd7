-- How far each project's events were passed on to the stream outside. The stream itself knows it too, as long as it keeps the
-- last of them.

create table event_relays (
    project_id uuid   primary key,
    position   bigint not null default 0 check (position >= 0)
);
