-- Projects whose usage could not be rated. They are tried again by themselves, later each time; everybody else goes on.
create table unrated_projects (
    project_id uuid        primary key,
    reason     text        not null,
    tries      integer     not null default 1 check (tries > 0),
    since      timestamptz not null default engine.now(),
    retry_at   timestamptz not null
);

-- How much a window holds is read from the index alone.
create index usage_records_of_window on usage_records (project_id, window_start, window_end);
drop index usage_records_by_window;
-- A page of one instance's records must not read everybody's.
create index usage_records_of_instance on usage_records (project_id, app_instance_id, id);
-- What one id used, in its order: a timeline of a year is read page by page.
create index usage_records_traced on usage_records (correlation_id, recorded_at, id);
drop index usage_records_by_correlation;

-- The timeline of one resource, in the order in which it was told.
create index outbox_about on outbox (project_id, subject, seq);
drop index outbox_by_subject;

-- Since when somebody listens to nodes without a break, and until when that is known. Who fell silent while nobody listened
-- is not lost.
create table listening (
    one   boolean     primary key default true check (one),
    since timestamptz not null,
    until timestamptz not null,
    check (since <= until)
);

-- Where the last look for runs that do not advance stopped; the next goes on from there.
create table stuck_run_looks (
    one    boolean primary key default true check (one),
    before uuid
);

-- What is to be retired, as it was asked for, until it is: should the run that does it be gone, another is started from this.
create table retirements (
    kind       text        not null check (kind in ('artifact.retire', 'version.retire')),
    subject_id uuid        not null,
    input      jsonb       not null,
    asked_at   timestamptz not null default engine.now(),
    -- When its grace period is over.
    due_at     timestamptz not null,
    primary key (kind, subject_id)
);

-- The part of an instance that usage is counted for: the controller's own word for it, the member that people reach, or the
-- one container there is.
create function control_plane_component(manifest jsonb) returns text language sql immutable as $$
    select coalesce(
        manifest #>> '{version,external_worker_contract,root,component_key}',
        case when manifest #> '{version,runtime_profile,renderer}' is not null then coalesce(
            manifest #>> '{version,runtime_profile,topology,endpoints,0,service}',
            manifest #>> '{version,runtime_profile,topology,services,0,name}', 'server') end,
        'main')
$$;
