// The parts of an instance, as their nodes saw them last.
import { useQuery } from "@tanstack/react-query";
import { oneOptions, SELDOM } from "../api/queries";
import type { InstanceMember, Page } from "../api/types";
import { type Column, Table } from "../ui/Table";

export function MembersPanel({ path }: { path: string }) {
  const members = useQuery(oneOptions<Page<InstanceMember>>("members", `${path}/members`, SELDOM)).data?.items ?? [];
  if (members.length === 0) return null;
  return (
    <section className="part" aria-label="Members">
      <h2>Members</h2>
      <Table label="Members" columns={COLUMNS} rows={members} id={(member) => member.id} edge={edge} />
    </section>
  );
}

const bad = (member: InstanceMember) =>
  member.health === "unhealthy" || ["exited", "restarting", "unreachable"].includes(member.status);
const edge = (member: InstanceMember) => (bad(member) ? "bad" : undefined);
const TONES: Record<string, string> = { healthy: "tone-good", unhealthy: "tone-bad" };

const COLUMNS: Column<InstanceMember>[] = [
  { head: "Member", cell: (member) => <strong>{member.component_key}</strong>, title: true },
  { head: "Status", cell: (member) => <span className={bad(member) ? "tone-bad" : ""}>{member.status}</span> },
  { head: "Health", cell: (member) => <span className={TONES[member.health] ?? "quiet"}>{member.health}</span> },
  { head: "Role", cell: (member) => member.role },
  { head: "Generation", cell: (member) => member.generation, className: "number" },
  { head: "Node", cell: (member) => member.node_id.slice(-12), className: "id" },
  { head: "Allocation", cell: (member) => member.allocation_id?.slice(-12), className: "id" },
];
