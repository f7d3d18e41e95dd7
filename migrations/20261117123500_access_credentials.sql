-- Secrets of a project in the platform's custody, for the apps it launches. Only their seals are here; a revoked one has none.
create table access_credentials (
    id         uuid primary key,
    org_id     uuid        not null,
    project_id uuid        not null,
    name       text        not null check (is_slug(name)),
    kind       text        not null check (kind in ('secret', 'ssh_key')),
    -- Bound to this row.
    sealed     text,
    -- Rises with every rotation.
    version    integer     not null default 1 check (version > 0),
    created_by uuid        not null,
    created_at timestamptz not null default engine.now(),
    rotated_at timestamptz,
    revoked_at timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id),
    check ((sealed is null) = (revoked_at is not null))
);
create unique index access_credentials_by_name on access_credentials (project_id, name) where revoked_at is null;
create index access_credentials_by_project on access_credentials (project_id, id);
