-- How many events were no longer kept when the webhook went on, which of them it wanted cannot be told any more, and when that
-- was last found.
alter table webhooks
    add column events_lost    bigint not null default 0 check (events_lost >= 0),
    add column events_lost_at timestamptz,
    add check ((events_lost > 0) = (events_lost_at is not null));
