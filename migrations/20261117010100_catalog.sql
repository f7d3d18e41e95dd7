-- The catalog: apps, their versions, what app teams submit for review, and what projects are entitled to.

create table apps (
    id               uuid primary key,
    slug             text        not null unique check (is_slug(slug)),
    -- Whoever submitted it first. Only this project registers artifacts and submits versions for the slug.
    owner_org_id     uuid        not null,
    owner_project_id uuid        not null,
    -- The `app` part of the newest version's manifest, and what lists show of it.
    card             jsonb       not null,
    -- Kept with every change of a version, so that a page of the catalog reads this table alone.
    newest_version   text,
    active_version   text,
    canaries         integer     not null default 0 check (canaries >= 0),
    created_at       timestamptz not null default engine.now(),
    updated_at       timestamptz not null default engine.now(),
    foreign key (owner_project_id, owner_org_id) references projects (id, org_id)
);
create index apps_by_owner on apps (owner_project_id, id);

create table app_versions (
    id             uuid primary key,
    app_id         uuid        not null references apps,
    version        text        not null check (version ~ '^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$'),
    status         text        not null default 'draft'
        check (status in ('draft', 'staged', 'canary', 'active', 'deprecated', 'retired')),
    -- Why it came to its status, in the words of whoever moved it; of a halted canary, the evidence.
    status_reason  text,
    evidence       jsonb,
    -- The normal form, and the digest by which a repetition is recognized.
    manifest       jsonb       not null,
    content_digest text        not null check (content_digest ~ '^sha256:[0-9a-f]{64}$'),
    -- Of the present canary. Each canary is a round of its own: the samples of an earlier one do not count.
    canary         jsonb,
    canary_round   integer     not null default 0,
    registered_by  uuid        not null,
    created_at     timestamptz not null default engine.now(),
    updated_at     timestamptz not null default engine.now(),
    unique (app_id, version),
    check ((status = 'canary') = (canary is not null))
);
create index app_versions_by_app on app_versions (app_id, id);
create index app_versions_in_canary on app_versions (app_id) where status = 'canary';

-- A version that left draft keeps its content, whoever asks.
create function refuse_change_of_frozen_version() returns trigger language plpgsql as $$
begin
    if old.status <> 'draft' and (new.manifest, new.content_digest, new.version, new.app_id)
        is distinct from (old.manifest, old.content_digest, old.version, old.app_id) then
        raise exception 'version % has left draft', old.version using errcode = 'insufficient_privilege';
    end if;
    return new;
end $$;
create trigger app_versions_keep_their_content before update on app_versions
    for each row execute function refuse_change_of_frozen_version();

-- One digest per artifact name and variant, chosen when the version leaves draft.
create table app_version_artifacts (
    version_id  uuid not null references app_versions,
    name        text not null,
    variant     text not null default '',
    artifact_id uuid not null,
    digest      text not null check (digest ~ '^sha256:[0-9a-f]{64}$'),
    primary key (version_id, name, variant)
);

-- How the deployments of a canary went: one row per deployment, so that a repetition counts once.
create table canary_samples (
    version_id uuid        not null references app_versions,
    round      integer     not null,
    run_id     uuid        not null,
    project_id uuid        not null,
    failed     boolean     not null,
    at         timestamptz not null default engine.now(),
    primary key (version_id, round, run_id)
);

-- Runs of the manifest's own tests on a fresh instance.
create table smoke_runs (
    version_id uuid        not null references app_versions,
    run_id     uuid        not null,
    passed     boolean     not null,
    evidence   jsonb       not null,
    at         timestamptz not null default engine.now(),
    primary key (version_id, run_id)
);
create index smoke_runs_by_time on smoke_runs (version_id, at);

create table manifest_submissions (
    id           uuid primary key,
    org_id       uuid        not null,
    project_id   uuid        not null,
    app_slug     text        not null check (is_slug(app_slug)),
    version      text        not null,
    manifest     jsonb       not null,
    content_digest text      not null check (content_digest ~ '^sha256:[0-9a-f]{64}$'),
    -- `superseded`: the team sent other content for the same version before anybody decided.
    status       text        not null default 'pending'
        check (status in ('pending', 'approved', 'rejected', 'superseded')),
    submitted_by uuid        not null,
    decided_by   uuid,
    decided_at   timestamptz,
    reason       text,
    created_at   timestamptz not null default engine.now(),
    foreign key (project_id, org_id) references projects (id, org_id),
    check ((status in ('approved', 'rejected')) = (decided_by is not null)),
    check ((decided_by is null) = (decided_at is null)),
    check (status <> 'rejected' or reason is not null)
);
create unique index manifest_submissions_pending on manifest_submissions (project_id, app_slug, version)
    where status = 'pending';
create index manifest_submissions_by_project on manifest_submissions (project_id, id);
create index manifest_submissions_by_status on manifest_submissions (status, id);

create table entitlements (
    project_id uuid        not null,
    org_id     uuid        not null,
    app_id     uuid        not null references apps,
    enabled    boolean     not null,
    -- What the project takes away from what it is allowed; never adds.
    overrides  jsonb       not null default '{}',
    updated_by uuid        not null,
    created_at timestamptz not null default engine.now(),
    updated_at timestamptz not null default engine.now(),
    primary key (project_id, app_id),
    foreign key (project_id, org_id) references projects (id, org_id)
);
