-- When the transaction of an entry began: before everything that it caused, while the entry itself is written last. Of what
-- was written before this, only the end is known.
alter table audit add column began_at timestamptz;
alter table audit alter column began_at set default engine.now() - (clock_timestamp() - transaction_timestamp());
