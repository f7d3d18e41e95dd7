-- What was rated keeps its price, whatever prices came since, until somebody asks for it to be rated again.
alter table usage_windows add column again boolean not null default false;

-- Adjustments belong to no window's line, so whoever sums a piece of an hour looks them up.
create index ledger_adjustments on ledger_entries (project_id, window_start) where kind = 'adjustment';

-- Hours gained adjustments without the app whose usage they are of.
with stray as (
    delete from usage_hours h using app_instances i
    where h.usage_source = 'app_runtime' and h.app_slug is null and i.id = h.app_instance_id
    returning h.project_id, h.hour, h.usage_source, h.usage_unit, h.app_instance_id, h.allocation_id, i.app_slug, h.quantity,
              h.unpriced, h.amount_minor)
insert into usage_hours as h (project_id, hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug, quantity,
    unpriced, amount_minor)
select * from stray
on conflict (project_id, hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug)
do update set quantity = h.quantity + excluded.quantity, unpriced = h.unpriced + excluded.unpriced,
    amount_minor = h.amount_minor + excluded.amount_minor;

-- Deliveries that came to an end go after a while.
create index webhook_deliveries_ended on webhook_deliveries (updated_at) where status <> 'pending';
