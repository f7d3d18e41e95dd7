-- A catalog of `bench.apps` apps with twenty versions each, and 200 projects that are entitled to a tenth of them. One app in
-- twenty has a canary; one in fifty has nothing but one.

insert into organizations (id, slug, display_name) values ('00000000-0000-4000-8000-000000000000', 'bench', 'bench');
insert into projects (id, org_id, slug, display_name)
select ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, '00000000-0000-4000-8000-000000000000', 'project-' || n, 'p'
from generate_series(1, 200) n;

insert into apps (id, slug, owner_org_id, owner_project_id, card, newest_version, active_version, canaries)
select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'app-' || n, '00000000-0000-4000-8000-000000000000',
       ('00000000-0000-4000-8000-' || lpad(to_hex(n % 200 + 1), 12, '0'))::uuid,
       jsonb_build_object('slug', 'app-' || n, 'display_name', 'App ' || n, 'description', repeat('What the app is for. ', 10),
           'category', 'inference', 'runtime_backend', 'launchable_oci', 'supported_modes',
           '{"operating_modes": ["tenant_dedicated"], "control_plane_scopes": ["project", "tenant"]}'::jsonb),
       '1.19.0', case when n % 50 <> 0 then '1.18.0' end, case when n % 20 = 0 then 1 else 0 end
from generate_series(1, current_setting('bench.apps')::int) n;

insert into app_versions (id, app_id, version, status, manifest, content_digest, canary, registered_by)
select ('00000000-0000-7001-8000-' || lpad(to_hex(n * 32 + v), 12, '0'))::uuid,
       ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, '1.' || v || '.0', status,
       jsonb_build_object('app', jsonb_build_object('slug', 'app-' || n), 'version', jsonb_build_object('version', '1.' || v || '.0',
           'release_notes', repeat('Something is better now. ', 60))),
       'sha256:' || encode(sha256((n || '/' || v)::bytea), 'hex'),
       case when status = 'canary' then jsonb_build_object('percent', 10, 'project_ids', '[]'::jsonb) end,
       '00000000-0000-4000-8000-000000000000'
from generate_series(1, current_setting('bench.apps')::int) n, generate_series(0, 19) v,
     lateral (select case when v = 19 and n % 20 = 0 then 'canary' when v = 18 and n % 50 <> 0 then 'active' when v < 10 then 'retired'
         when v < 18 then 'deprecated' else 'staged' end as status) s;

insert into entitlements (project_id, org_id, app_id, enabled, updated_by)
select ('00000000-0000-4000-8000-' || lpad(to_hex(p), 12, '0'))::uuid, '00000000-0000-4000-8000-000000000000',
       ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, n % 9 <> 0, '00000000-0000-4000-8000-000000000000'
from generate_series(1, 200) p, generate_series(1, current_setting('bench.apps')::int) n where (n * 7 + p) % 10 = 0;
