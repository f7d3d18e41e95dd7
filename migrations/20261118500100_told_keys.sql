-- The watch over nodes looks for those whose last set of keys was not written, among all that nodes were ever asked.
create index node_tasks_of_keys on node_tasks (node_id, generation) where kind = 'ssh.install_authorized_keys';
