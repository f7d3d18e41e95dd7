-- Who there is and what they may do. An outside issuer says who somebody is; these tables alone say what they may do.

create function is_slug(text text) returns boolean language sql immutable parallel safe as
    $$ select text ~ '^[a-z0-9][a-z0-9-]{1,62}$' $$;

create table organizations (
    id           uuid primary key,
    slug         text        not null unique check (is_slug(slug)),
    display_name text        not null,
    created_at   timestamptz not null default engine.now(),
    updated_at   timestamptz not null default engine.now()
);

create table projects (
    id           uuid primary key,
    org_id       uuid        not null references organizations,
    slug         text        not null check (is_slug(slug)),
    display_name text        not null,
    created_at   timestamptz not null default engine.now(),
    updated_at   timestamptz not null default engine.now(),
    unique (org_id, slug),
    -- Rows that carry both ids refer to both, so they cannot disagree.
    unique (id, org_id)
);

-- Somebody who has signed in at least once. The pair of issuer and subject is the person; the name is for reading.
create table users (
    id            uuid primary key,
    issuer        text        not null,
    subject       text        not null,
    username      text        not null,
    platform_role text        not null default 'platform_user'
        check (platform_role in ('platform_superadmin', 'platform_ops', 'platform_user')),
    created_at    timestamptz not null default engine.now(),
    unique (issuer, subject)
);
create index users_by_name on users (username);

-- Custom roles: sets of permission keys under a name.
create table custom_roles (
    id          uuid primary key,
    org_id      uuid        not null references organizations,
    name        text        not null check (is_slug(name)),
    permissions text[]      not null,
    created_at  timestamptz not null default engine.now(),
    updated_at  timestamptz not null default engine.now(),
    unique (org_id, name),
    unique (id, org_id)
);

-- A part in an organization, or, with a project, in that project only. The role is built in or one of the organization's.
create table memberships (
    id         uuid primary key,
    org_id     uuid        not null references organizations,
    project_id uuid,
    user_id    uuid        not null references users,
    role       text,
    role_id    uuid,
    created_at timestamptz not null default engine.now(),
    updated_at timestamptz not null default engine.now(),
    foreign key (project_id, org_id) references projects (id, org_id),
    foreign key (role_id, org_id) references custom_roles (id, org_id),
    check ((role is null) <> (role_id is null)),
    check (role is null or role = any (case when project_id is null
        then array['owner', 'admin', 'member', 'viewer']
        else array['admin', 'operator', 'publisher', 'viewer'] end)),
    unique nulls not distinct (user_id, org_id, project_id)
);
create index memberships_by_place on memberships (org_id, project_id, id);
create index memberships_by_role on memberships (role_id) where role_id is not null;

create table service_accounts (
    id           uuid primary key,
    org_id       uuid        not null,
    project_id   uuid        not null,
    slug         text        not null check (is_slug(slug)),
    name         text        not null,
    description  text,
    permissions  text[]      not null,
    status       text        not null default 'active' check (status in ('active', 'disabled', 'deleted')),
    created_by   uuid        not null,
    created_at   timestamptz not null default engine.now(),
    updated_at   timestamptz not null default engine.now(),
    last_used_at timestamptz,
    foreign key (project_id, org_id) references projects (id, org_id),
    unique (id, project_id)
);
create unique index service_accounts_by_slug on service_accounts (project_id, slug) where status <> 'deleted';
create index service_accounts_by_project on service_accounts (project_id, id);

-- Only public halves are kept. At most two live at a time, so that a rotation has no gap.
create table service_account_keys (
    key_id             text primary key,
    service_account_id uuid        not null references service_accounts,
    public_key         text        not null,
    created_at         timestamptz not null default engine.now(),
    revoked_at         timestamptz
);
create index service_account_keys_live on service_account_keys (service_account_id) where revoked_at is null;

-- An assertion is good once; rows outlive the assertion they forbid and no longer.
create table used_assertions (
    service_account_id uuid        not null references service_accounts,
    jti                text        not null,
    expires_at         timestamptz not null,
    primary key (service_account_id, jti)
);
create index used_assertions_by_age on used_assertions (expires_at);

-- An outside issuer's tokens that a project accepts in exchange for a short token of one of its service accounts.
create table federated_trusts (
    id                 uuid primary key,
    org_id             uuid        not null,
    project_id         uuid        not null,
    service_account_id uuid        not null,
    name               text        not null check (is_slug(name)),
    issuer             text        not null,
    audience           text        not null,
    subject_pattern    text        not null,
    claims             jsonb       not null,
    created_by         uuid        not null,
    created_at         timestamptz not null default engine.now(),
    foreign key (project_id, org_id) references projects (id, org_id),
    foreign key (service_account_id, project_id) references service_accounts (id, project_id),
    unique (project_id, name)
);

-- The nil id stands for the platform on the global layer.
create table policies (
    layer      text        not null check (layer in ('global', 'org', 'project', 'user')),
    scope_id   uuid        not null,
    key        text        not null,
    value      jsonb       not null,
    updated_by uuid        not null,
    updated_at timestamptz not null default engine.now(),
    primary key (layer, scope_id, key),
    check ((layer = 'global') = (scope_id = '00000000-0000-0000-0000-000000000000'))
);

-- Rises with every change of who may do what. Processes keep principals in memory as long as it stands still, so the
-- triggers below must name every column that `store::principals` reads.
create table authority (
    version bigint not null
);
create unique index authority_is_one_row on authority ((true));
insert into authority values (1);

create function authority_changed() returns trigger language plpgsql as $$
begin
    update authority set version = version + 1;
    return null;
end $$;
create trigger users_change_authority after update of platform_role on users
    for each statement execute function authority_changed();
create trigger custom_roles_change_authority after update of name, permissions on custom_roles
    for each statement execute function authority_changed();
create trigger memberships_change_authority after insert or delete or update of role, role_id on memberships
    for each statement execute function authority_changed();
create trigger service_accounts_change_authority after update of permissions, status on service_accounts
    for each statement execute function authority_changed();
create trigger policies_change_authority after insert or delete or update on policies
    for each statement execute function authority_changed();
