-- A window of which a part comes to more than can be counted stays open for that part, and is tried again by itself: later
-- each time, or as soon as something is added to it. Everything else of its project is charged meanwhile.
alter table open_windows
    add column tries    integer not null default 0,
    add column retry_at timestamptz;

-- Whether the rest of the project's usage is rated.
alter table unrated_projects add column in_part boolean not null default false;
