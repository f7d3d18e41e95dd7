-- The Compose file of a stack, as it was rendered for its launch. It holds no secret: those are names of variables.
alter table app_instance_releases add column rendered jsonb;
