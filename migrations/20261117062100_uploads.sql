-- What opens an upload: the hash of the last word of its address. Only blobs on a disk of ours have one; buckets have
-- addresses of their own.
alter table publish_intents add column upload_hash bytea unique;
