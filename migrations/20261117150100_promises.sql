-- What changed lately is checked every minute.
create index app_instances_by_change on app_instances (updated_at);
create index act_by_time on engine.act (at);
