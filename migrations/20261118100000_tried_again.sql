-- Whether an ended run was tried again is asked of every failure that is listed.
create index run_by_retry on engine.run (retry_of) where retry_of is not null;
