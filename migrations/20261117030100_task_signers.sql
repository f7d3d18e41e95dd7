-- The keys that sign tasks for nodes. A signer is staged before it signs and believed for a while after it stopped; nodes
-- hold the whole list and take a new one only with a higher version.

create table task_signers (
    key_id     text primary key,
    public_key text        not null,
    -- The private half, sealed and bound to this row; gone once nothing may be signed with it again.
    sealed     text,
    state      text        not null check (state in ('staged', 'active', 'grace', 'retired', 'revoked')),
    created_at timestamptz not null default engine.now(),
    updated_at timestamptz not null default engine.now(),
    check ((sealed is not null) = (state in ('staged', 'active')))
);
create unique index task_signers_one_active on task_signers ((true)) where state = 'active';

create table task_keyring (
    version bigint not null
);
create unique index task_keyring_is_one_row on task_keyring ((true));
insert into task_keyring values (0);

create function task_keyring_changed() returns trigger language plpgsql as $$
begin
    update task_keyring set version = version + 1;
    return null;
end $$;
create trigger task_signers_change_keyring after insert or delete or update on task_signers
    for each statement execute function task_keyring_changed();
