-- One instance's hours, found by key: a page of them must not read everybody's.
create index usage_hours_of_instance on usage_hours (project_id, app_instance_id, hour);
