-- Who is signed in to the console. The browser holds a secret, this table its digest: whoever reads the table can
-- sign in as nobody. A session is its row, so signing out takes effect at once and in every process.

create table console_sessions (
    digest     bytea       primary key check (length(digest) = 32),
    user_id    uuid        not null references users (id),
    created_at timestamptz not null default engine.now(),
    expires_at timestamptz not null
);
create index console_sessions_by_age on console_sessions (expires_at);
