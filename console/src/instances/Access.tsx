// Where an instance is reached: the address on its node, and the command that brings it to the reader's own machine.
import { useQuery } from "@tanstack/react-query";
import { oneOptions, SELDOM } from "../api/queries";
import type { Access } from "../api/types";
import { Copy } from "../ui/Copy";
import { Problem } from "../ui/Feedback";
import { type Column, Table } from "../ui/Table";

type Endpoint = Access["endpoints"][number];

export function AccessPanel({ path }: { path: string }) {
  const access = useQuery(oneOptions<Access>("access", `${path}/access`, SELDOM));
  if (access.error) return <Problem error={access.error} />;
  if (!access.data) return null;
  return (
    <section className="part" aria-label="Access">
      <h2>Access</h2>
      {access.data.endpoints.length === 0 ? (
        <p className="quiet">This app has no endpoint.</p>
      ) : (
        <Table label="Endpoints" columns={COLUMNS} rows={access.data.endpoints} id={(endpoint) => endpoint.name} />
      )}
    </section>
  );
}

const TONES: Record<string, string> = { healthy: "tone-good", unhealthy: "tone-bad" };

const COLUMNS: Column<Endpoint>[] = [
  { head: "Endpoint", cell: (endpoint) => <strong>{endpoint.name}</strong>, title: true },
  {
    head: "Health",
    cell: (endpoint) => <span className={TONES[endpoint.health] ?? "quiet"}>{endpoint.health}</span>,
  },
  { head: "On the node", cell: (endpoint) => `${endpoint.node} · ${endpoint.private_address}`, className: "id" },
  { head: "Tunnel", cell: (endpoint) => <Command text={endpoint.tunnel_command} /> },
  {
    head: "Then open",
    cell: (endpoint) => (
      <a href={endpoint.url} target="_blank" rel="noreferrer">
        {endpoint.url}
      </a>
    ),
  },
];

function Command({ text }: { text: string }) {
  return (
    <Copy text={text} label="Copy the tunnel command">
      <code>{text}</code>
    </Copy>
  );
}
