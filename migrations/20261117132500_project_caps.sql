-- How many runs of a project may be under way, where an administrator has said so: the policy
-- workflow.max_in_flight_per_project, the most specific layer first. The row without a project holds for everybody else.
-- The engine reads this view and knows nothing of policies.

create view engine.project_cap as
select null::uuid as project_id, (value #>> '{}')::bigint as cap
from policies where key = 'workflow.max_in_flight_per_project' and layer = 'global'
union all
select project.id, (coalesce(own.value, org.value) #>> '{}')::bigint
from projects project
left join policies own on own.key = 'workflow.max_in_flight_per_project' and own.layer = 'project'
    and own.scope_id = project.id
left join policies org on org.key = 'workflow.max_in_flight_per_project' and org.layer = 'org'
    and org.scope_id = project.org_id
where own.value is not null or org.value is not null;
