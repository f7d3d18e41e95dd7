-- The tick that was seen in time and waits for the run before it, so that it does not count as missed however long that
-- takes. It waits only while it is `next_at`: an older release that moves that on need not know of it.
alter table engine.schedule add column waiting_tick timestamptz;
