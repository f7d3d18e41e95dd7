-- Where the look at the promises, which every process makes each minute, goes on among all runs: besides what changed, a few
-- that stand still have their turn each time, so that sooner or later every one is looked at.
create table engine.look (
    one   boolean primary key default true check (one),
    -- The run at which the last look stopped.
    after uuid not null
);
insert into engine.look (after) values ('00000000-0000-0000-0000-000000000000');

-- The same of instances, by a part of them that is always the same.
create index app_instances_by_turn on app_instances ((hashtext(id::text) & 1023));
create index app_versions_by_change on app_versions (updated_at);
create index app_artifacts_by_change on app_artifacts (updated_at);

-- Whether this is somebody whom the platform knows: what such a one did came through its API.
create function is_principal(id uuid) returns boolean language sql stable as $$
    select exists (select from users u where u.id = $1) or exists (select from service_accounts s where s.id = $1)
$$;
