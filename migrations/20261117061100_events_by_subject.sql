-- The timeline of one resource.
create index outbox_by_subject on outbox (subject, id);

-- Whom a silent node took along, and who waits for one to return.
create index app_instances_unreachable on app_instances (allocation_id) where status = 'failed' and status_reason = 'node_unreachable';
