-- What was asked for, apart from the defaults of the version that serves: another version is held to this and adds its own.
-- Null where an older release wrote the row: its config then counts as asked for.
alter table app_instances add column asked_config jsonb;
