// What the last verification found: every check, who signed, and who built it.
import type { Artifact } from "../api/types";
import { Json } from "../run/Json";
import { Empty } from "../ui/Feedback";
import { type Column, Table } from "../ui/Table";

type Evidence = Artifact["evidence"];

export function EvidencePanel({ evidence }: { evidence: Evidence }) {
  if (evidence.checks.length === 0) {
    return <Empty title="Never verified">Until it is, no version that uses it can be rolled out.</Empty>;
  }
  return (
    <>
      <section className="part" aria-label="Checks">
        <h2>Checks</h2>
        <Table label="Checks" columns={CHECKS} rows={evidence.checks} id={(one) => `${one.check} ${one.code}`} />
      </section>
      {(evidence.signatures ?? []).length > 0 && (
        <section className="part" aria-label="Signatures">
          <h2>Signatures</h2>
          <Table
            label="Signatures"
            columns={SIGNATURES}
            rows={evidence.signatures ?? []}
            id={(one) => one.subject + one.key_id}
          />
        </section>
      )}
      {evidence.provenance && <Json title="Provenance" value={evidence.provenance} />}
    </>
  );
}

const CHECKS: Column<Evidence["checks"][number]>[] = [
  { head: "Check", cell: (one) => <strong>{one.check.replaceAll("_", " ")}</strong>, title: true },
  {
    head: "Result",
    cell: (one) => <span className={one.passed ? "tone-good" : "tone-bad"}>{one.passed ? "passed" : "failed"}</span>,
  },
  { head: "What it found", cell: (one) => one.message, className: "why" },
];

const SIGNATURES: Column<NonNullable<Evidence["signatures"]>[number]>[] = [
  { head: "Key", cell: (one) => one.key_id.slice(-12), className: "id", title: true },
  { head: "Form", cell: (one) => one.form },
  { head: "Signed", cell: (one) => one.subject, className: "id clip" },
];
