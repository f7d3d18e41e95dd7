-- Of which stream a position is, by the time at which it was made, in nanoseconds. One that was lost and made again is another,
-- and begins with what is kept. Positions from before are taken to be of the stream that is there.
alter table event_relays add column stream_made bigint;
