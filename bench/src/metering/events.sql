-- So many events of one project's twenty instances, a month's worth at most, none of which is rated; and a price. Their ids
-- are of the time of their windows, as those that the platform makes are.
insert into prices (id, version, usage_source, usage_unit, covers, rate, currency, effective_from, created_by)
values (gen_random_uuid(), 1, 'app_runtime', 'tokens', 'service', '{"model": "per_unit", "amount_minor": 3, "per": 2}', 'EUR',
        '2020-01-01T00:00:00Z', gen_random_uuid());
insert into usage_records (id, org_id, project_id, app_instance_id, app_slug, usage_source, usage_unit, quantity, occurred_at,
                           window_start, window_end, correlation_id, source, event_id)
select (lpad(to_hex((extract(epoch from w.start) * 1000)::bigint + n % 250), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
           || substr(md5(n::text), 4, 15))::uuid, p.id, p.id, ('00000000-0000-0000-0000-' || lpad(to_hex(n % 20 + 1), 12, '0'))::uuid, 'writer',
       'app_runtime', 'tokens', 7, w.start, w.start, w.start + interval '1 minute', 'c-' || n / 500, '/apps/writer', n::text
from generate_series(0, current_setting('bench.events')::bigint - 1) n
cross join (select '00000000-0000-4000-8000-000000000001'::uuid as id) p
cross join lateral (select '2026-01-01T00:00:00Z'::timestamptz + (n / 250 % 40000) * interval '1 minute' as start) w;
insert into open_windows select distinct project_id, window_start, window_end from usage_records;
