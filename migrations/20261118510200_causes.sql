-- Why-stuck advises only what the engine grants, says which limit holds a run back, and knows of a run that was admitted
-- and that nobody has taken.

-- What a process admits of one project where no administrator has said how many. Older releases do not tell.
alter table engine.incarnation add column project_cap bigint;

-- Functions, so that a reader who asks for codes alone does not pay for the evidence.
create function engine.living_processes() returns bigint language sql stable as $$
    select count(*) from engine.incarnation where died_at is null and expires_at > clock_timestamp()
$$;

-- The window: how many runs of all projects may be admitted at once.
create function engine.most_admitted() returns bigint language sql stable as $$
    select 2 * coalesce(sum(slots), 0)::bigint from engine.incarnation
    where died_at is null and expires_at > clock_timestamp()
$$;

-- Ordered, so that the index is walked whatever the statistics say, and bounded like any look.
create function engine.admitted() returns bigint language sql stable as $$
    select count(*) from (
        select 1 from engine.run where queued_job is not null order by project_id limit 100000) admitted
$$;

create function engine.admitted_of(project uuid) returns bigint language sql stable as $$
    select count(*) from engine.run where project_id = $1 and queued_job is not null
$$;

-- Null while only older releases live and no administrator has said anything.
create function engine.most_admitted_of(project uuid) returns bigint language sql stable as $$
    select coalesce(
        (select cap from engine.project_cap where project_id = $1),
        (select cap from engine.project_cap where project_id is null),
        (select min(project_cap) from engine.incarnation where died_at is null and expires_at > clock_timestamp()))
$$;

create or replace view engine.run_cause as
select run.id as run_id,
       run.code,
       jsonb_strip_nulls(coalesce(run.cause_detail, '{}') || case run.code
           when 'lease_lost' then jsonb_build_object(
               'worker', run.driver_name, 'epoch', run.epoch,
               'lease_expires_at', run.driver_expires_at, 'died_at', run.driver_died_at)
           when 'waiting_for_run' then coalesce((
               select jsonb_build_object('run', other.id, 'kind', other.kind, 'status', other.state) from engine.run other
               where other.id = coalesce(run.holder_id, run.child_id)), '{}')
           when 'project_limit' then jsonb_build_object(
               'due_since', case when run.queued_job is null then run.wake_at end,
               'queued_since', case when run.queued_job is not null then run.queued_at end,
               'waits_for', case when run.queued_job is not null then 'a free slot' end,
               'admitted_in_project', engine.admitted_of(run.project_id),
               'project_cap', engine.most_admitted_of(run.project_id),
               'admitted', (select engine.admitted()),
               'window', (select engine.most_admitted()))
           when 'unknown_version' then jsonb_build_object(
               'kind', run.kind, 'version', run.version, 'living_processes', (select engine.living_processes()))
           when 'database_pressure' then jsonb_build_object(
               'pressed_since', (select min(able.pressed_since) from engine.living_and_able(run.kind, run.version) able))
           else '{}' end) as detail,
       case run.code
           when 'lease_lost' then 'Nothing to do: another process takes the run over once the lease has ended.'
           when 'backoff' then 'Nothing to do: the step is tried again at next_at; read its last error meanwhile.'
           when 'project_limit' then case
               when run.queued_job is not null then
                   'Nothing to do: the run begins when a slot is free; '
                   'start another process, or raise engine.slots, if it is held back for long.'
               when (select engine.admitted()) < (select engine.most_admitted()) then case
                   when engine.admitted_of(run.project_id) < engine.most_admitted_of(run.project_id) then
                       'Nothing to do: there is room again, and the run has its turn.'
                   else
                       'Nothing to do: the run goes on when runs of its project end; '
                       'raise workflow.max_in_flight_per_project if its project is held back for long.' end
               when engine.admitted_of(run.project_id) < engine.most_admitted_of(run.project_id) then
                   'Nothing to do: the run goes on when runs of any project end, its own has room; '
                   'start another process, or raise engine.slots, if it is held back for long.'
               else
                   'Nothing to do: the run goes on when runs before it end, no slot is free and its project is at its cap; '
                   'start another process, or raise engine.slots, if it is held back for long, '
                   'and then workflow.max_in_flight_per_project.' end
           when 'waiting_signal' then 'Nothing to do: the run goes on when its signal arrives, or at next_at without it.'
           when 'waiting_timer' then 'Nothing to do: the run goes on at next_at.'
           when 'paused_by_operator' then case
               when run.unwinding then 'Resume the run: it goes on undoing what it did.'
               when run.pivoted then 'Resume the run to go on.'
               else 'Resume the run to go on, or cancel it to undo what it did.' end
           when 'retries_exhausted' then
               'Read the error of the failed step and repair its cause, then retry the run; ' || case
               when not run.pivoted and not run.unwinding then 'or cancel it to undo what it did.'
               when run.wake_at is not null then 'meanwhile it is tried again at next_at, unless you pause it.'
               else 'it can no longer be cancelled.' end
           when 'undo_failed' then
               'Repair what the failed undo names, then retry the run: it goes on undoing the steps that remain.'
           when 'unknown_version' then case
               when run.cause_detail ->> 'journal' is not null then
                   'Start a process of the release that wrote the journal: no living one can read it.'
               when run.cause_detail ->> 'holder' is not null then
                   'Start a process that knows the run it took over from: only that can tell what is left to undo.'
               else format('Start a process that knows %s version %s: no living one does.', run.kind, run.version) end
           when 'waiting_for_run' then
               'Nothing to do, unless the run it waits for is itself paused or stuck: then act on that one.'
           when 'database_pressure' then
               'Nothing to do for the run: it goes on when the database keeps up again; look at the database''s load.'
           when 'crash_loop' then
               'Find out why its worker dies at this step (logs of this correlation id), then retry the run.'
           when 'nondeterministic' then
               'Run the release that started it' || case
               when run.pivoted or run.unwinding then ': ' else ', or cancel it: ' end
               || 'its code now asks for other steps than its journal holds.'
       end as next_action,
       case run.code
           when 'lease_lost' then run.driver_expires_at
           when 'project_limit' then null
           when 'unknown_version' then null
           when 'database_pressure' then null
           else run.wake_at end as next_at,
       run.stuck
from (
    select run.*,
           -- What the stuck-run page shows: a person must act, or the run should go on by itself and does not. Waiting
           -- for a turn is normal for a minute.
           run.state in ('paused', 'stuck') or run.code in ('lease_lost', 'unknown_version', 'database_pressure')
               or (run.code = 'project_limit' and (run.queued_job is not null
                   or run.wake_at < (select engine.now()) - interval '1 minute')) as stuck
    from (
        select run.*,
               driver.name as driver_name, driver.expires_at as driver_expires_at, driver.died_at as driver_died_at,
               holder.id as holder_id,
               case when run.cause = 'waiting_for_run' then (
                   select child.id from engine.run child where child.parent_id = run.id and child.finished_at is null
                   order by child.id desc limit 1) end as child_id,
               case
               when run.owner is not null then
                   case when driver.died_at is not null or driver.expires_at <= clock_timestamp() or driver.id is null
                            then 'lease_lost'
                        when driver.pressed_since is not null then 'database_pressure' end
               -- A person or a repair must come first, whatever the timers say.
               when run.state in ('paused', 'stuck') then run.cause
               when run.succeeds_holder then 'waiting_for_run'
               -- Its kind is known, but not the words of its journal, or not the run whose debts it took over.
               when run.cause = 'unknown_version' and run.queued_job is null
                   and (run.cause_detail ->> 'journal' is not null or run.cause_detail ->> 'holder' is not null)
                   then run.cause
               -- Due: it has its job, or its time has come. What it waited for before no longer holds it back. A run
               -- that one process put back for not knowing it belongs here too: whether any knows it is asked afresh.
               when run.queued_job is not null or run.wake_at <= (select engine.now())
                   or run.cause = 'unknown_version' then
                   case when not exists (select from engine.living_and_able(run.kind, run.version)) then 'unknown_version'
                        when not exists (select from engine.living_and_able(run.kind, run.version) able
                                         where able.pressed_since is null) then 'database_pressure'
                        -- Admitted, and usually about to be taken; after a minute every slot must be busy.
                        when run.queued_job is not null then
                            case when run.queued_at < (select engine.now()) - interval '1 minute' then 'project_limit' end
                        when run.wake_at <= (select engine.now()) then 'project_limit'
                        else 'backoff' end
               else run.cause
               end as code
        from engine.run
        left join engine.incarnation driver on driver.id = run.owner
        left join engine.run holder on run.succeeds_holder and holder.holds_target and holder.target = run.target
        where run.finished_at is null
    ) run
    where run.code is not null
) run;
