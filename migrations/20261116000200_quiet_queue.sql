-- The queue's NOTIFY trigger takes one database-wide lock at commit, which serialises every start.
-- Workers are woken in process and poll as the floor; `doctor` and every start re-check that it stays off.
alter table apalis.jobs disable trigger notify_workers;
