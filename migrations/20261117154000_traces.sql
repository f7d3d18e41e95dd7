-- The span that a run was started by, as W3C names it: what the run does is told to belong to it.
alter table engine.run add column traceparent text;
