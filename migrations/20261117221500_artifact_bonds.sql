-- Whoever revokes an index revokes what it names: these bytes are not registered again, under any name. An index that only
-- went along with one of its children leaves the others as they are, so what was meant is written down.
alter table app_artifacts add column revoked_bytes text[] not null default '{}';

-- Where a blob was built, as whoever published it sent it; judged anew with every verification.
alter table app_artifacts add column provenance text;

-- A release of the platform is for everybody who is signed in; all other permissions to pull end with the right to read.
alter table pull_intents add column of_release boolean not null default false;

-- What a secret opens, told by the audit log when it is opened: never the secret itself.
alter table wrapped_secrets
    add column org_id uuid,
    add column project_id uuid,
    add column target text,
    add column about jsonb;
