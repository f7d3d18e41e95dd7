-- When one signer of tasks takes over from another, the old one signs the list that says so, with its last word. A node that was
-- away all the while believes the old one, and by it the new one.
alter table task_signers add column handover jsonb,
    add check (handover is null or state not in ('staged', 'active'));
