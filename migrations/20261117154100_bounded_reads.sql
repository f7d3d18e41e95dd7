-- Every filter of the audit log finds what it asks for without reading past the rest.
create index audit_by_action on audit (action, id);
create index audit_by_target on audit (target, id);
create index audit_denied on audit (id) where result = 'denied';
create index audit_denied_by_project on audit (project_id, id) where result = 'denied';
create index audit_by_time on audit (at);

-- Values of one key, layer by layer; of one subject.
create index policies_by_key on policies (key, layer, scope_id);
create index policies_by_subject on policies (scope_id);
