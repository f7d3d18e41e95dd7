-- A name is kept with its principal, so that showing it costs no query; a change of it raises the version of authority.
-- By row and only when it differs: every first sign-in passes through an update that changes nothing.
create trigger users_change_name after update of username on users
    for each row when (old.username is distinct from new.username) execute function authority_changed();
create trigger service_accounts_change_name after update of name on service_accounts
    for each row when (old.name is distinct from new.name) execute function authority_changed();
