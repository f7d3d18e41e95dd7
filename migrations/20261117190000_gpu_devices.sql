-- Which GPUs of its node an allocation is given, by their index there: two allocations never share one, and neither do two
-- instances. An instance holds each as `allocation:<id>:gpu:<index>` in the ledger.
alter table allocations add column gpus integer[] not null default '{}';
update allocations a set gpus = array(select generate_series(taken.first, taken.first + a.gpu_count - 1))
from (select id, (sum(gpu_count) over (partition by node_id order by id) - gpu_count)::integer as first
      from allocations where status <> 'released') taken
where taken.id = a.id and a.gpu_count > 0;

-- Which of them the release was launched with.
alter table app_instance_releases add column gpus integer[] not null default '{}';
