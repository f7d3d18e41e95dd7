-- What was done and what was refused. Rows are written with the change they tell of, or, for a refusal, on their own,
-- and nobody can alter them afterwards: the serving role has no right to, and the trigger stops everybody else.

create table audit (
    id             uuid primary key,
    at             timestamptz not null default engine.now(),
    org_id         uuid,
    project_id     uuid,
    actor_id       uuid,
    actor_type     text,
    actor_role     text,
    action         text        not null,
    target         text        not null,
    result         text        not null check (result in ('succeeded', 'denied')),
    -- The error code of a denial.
    code           text        check ((code is null) = (result = 'succeeded')),
    before         jsonb,
    after          jsonb,
    reason         text,
    correlation_id text        not null,
    ip             text,
    user_agent     text
);
create index audit_by_project on audit (project_id, id);
create index audit_by_actor on audit (actor_id, id);
create index audit_by_correlation on audit (correlation_id);

create function refuse_change_of_history() returns trigger language plpgsql as $$
begin
    raise exception '% only grows', tg_table_name using errcode = 'insufficient_privilege';
end $$;
create trigger audit_only_grows before update or delete or truncate on audit
    for each statement execute function refuse_change_of_history();
