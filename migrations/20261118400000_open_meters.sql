-- Whoever reads what a project used asks its open meters how far that goes.
create index meters_open_of_project on meters (project_id) where closed_at is null;
