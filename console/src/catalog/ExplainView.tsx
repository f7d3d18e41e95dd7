// What a version needs and gives, in one view, so that nobody has to read a manifest to decide.
import type { Explanation } from "../api/types";
import { counted } from "../runtime";
import { Facts } from "../ui/Facts";
import { type Column, Table } from "../ui/Table";

export function ExplainView({ of }: { of: Explanation }) {
  return (
    <section className="part" aria-label="What it needs and gives">
      <h2>What it needs and gives</h2>
      <div className="panel">
        <Facts facts={[...needs(of), ...gives(of)]} />
      </div>
      {of.parameters.length > 0 && (
        <>
          <h3 className="over">Settings</h3>
          <Table label="Settings" columns={SETTINGS} rows={of.parameters} id={(one) => one.name} />
        </>
      )}
      {of.credentials.length > 0 && (
        <>
          <h3 className="over">Credentials</h3>
          <Table label="Credentials" columns={CREDENTIALS} rows={of.credentials} id={(one) => one.class} />
        </>
      )}
    </section>
  );
}

type Range = NonNullable<Explanation["needs"]["cpu_cores"]>;

function range(amount: Range | null | undefined, unit: string, units?: string): string | null {
  if (!amount) return null;
  if (amount.max === 0) return "none";
  const usual = amount.default === 0 ? "none" : counted(amount.default, unit, units);
  if (amount.min === amount.max) return usual;
  return amount.max == null ? `${usual}, at least ${amount.min}` : `${usual}, from ${amount.min} to ${amount.max}`;
}

function needs({ needs, artifacts, trust }: Explanation): [string, React.ReactNode][] {
  const gpus = range(needs.gpu_count, "GPU") ?? (needs.min_gpu_count > 0 ? `at least ${needs.min_gpu_count}` : null);
  return [
    ["GPUs", gpus],
    ["Accelerators", needs.accelerators.length > 0 ? needs.accelerators.join(", ") : "any"],
    ["CPU", range(needs.cpu_cores, "core")],
    ["Memory", range(needs.memory_gib, "GiB", "GiB")],
    ["Allocation", needs.capacity_shapes.length > 0 ? needs.capacity_shapes.map(words).join(", ") : "any"],
    ["Node", needs.exclusive_node ? "a node of its own" : "may share a node"],
    ["Images", chips(artifacts.map((one) => (one.variant ? `${one.name} · ${one.variant}` : one.name)))],
    ["Pulled by", trust.digest_only ? "digest only" : "digest or tag"],
  ];
}

function gives({ ports, supported, price }: Explanation): [string, React.ReactNode][] {
  return [
    ["Ports", chips(ports.map((port) => `${port.name} · ${port.container}`))],
    ["Modes", chips(supported.map((pair) => `${words(pair.operating_mode)} · ${pair.control_plane_scope}`))],
    ["Billed by", price.metering ? `${price.unit ?? words(price.metering)}, counted by the ${price.counted_by}` : null],
  ];
}

const words = (text: string) => text.replaceAll("_", " ");

function chips(texts: string[]) {
  if (texts.length === 0) return null;
  return texts.map((text) => (
    <span key={text} className="chip">
      {text}
    </span>
  ));
}

const value = (one: unknown) => (one === undefined || one === null ? null : JSON.stringify(one));

const SETTINGS: Column<Explanation["parameters"][number]>[] = [
  { head: "Setting", cell: (one) => <Setting one={one} />, title: true },
  { head: "Type", cell: (one) => [one.kind].flat().join(" or "), className: "nowrap" },
  { head: "Default", cell: (one) => value(one.default), className: "id" },
  { head: "Choices", cell: (one) => one.choices?.map((choice) => String(choice)).join(", ") },
];

function Setting({ one }: { one: Explanation["parameters"][number] }) {
  return (
    <>
      <strong>{one.name}</strong>
      {one.required && <span className="asked">required</span>}
      {one.description && <span className="subject">{one.description}</span>}
    </>
  );
}

const CREDENTIALS: Column<Explanation["credentials"][number]>[] = [
  { head: "Class", cell: (one) => <strong>{one.class}</strong>, title: true },
  { head: "Handed over as", cell: (one) => one.env, className: "id" },
  { head: "Required", cell: (one) => (one.required ? "yes" : "no") },
  { head: "For", cell: (one) => one.description, className: "why" },
];
