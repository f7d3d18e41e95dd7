-- Rating a unit anew goes through its windows batch by batch, each from where the one before ended: in this order, and without
-- reading what is behind it.
create index usage_windows_by_unit on usage_windows (usage_source, usage_unit, project_id, window_start, window_end);
