// The ledger, entry by entry. Each entry holds the hash of the one before it, so that none can be changed or left out.
import { useLedger } from "../api/queries";
import type { LedgerEntry } from "../api/types";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { type Column, Table } from "../ui/Table";
import { TraceLink } from "../ui/TraceLink";
import { money, quantity } from "./amounts";

export function LedgerTable() {
  const place = usePlace();
  const ledger = useLedger(place);
  return (
    <section aria-label="Ledger">
      <div className="head">
        <span className="quiet">Oldest first. A correction is an entry of its own that takes another one back.</span>
        <span className="spring" />
        <Copy text="gpuaas bill export --to bill.json" label="Copy as CLI" />
        <Copy text={curl("GET", `/billing/ledger?project_id=${place.id}`)} label="Copy as curl" />
      </div>
      <Listed
        list={ledger}
        what="the ledger"
        empty={
          <Empty title="Nothing was charged yet">
            Charges appear once the platform has prices and a window of usage is over.
          </Empty>
        }
      >
        {(items) => (
          <Table label="Ledger" columns={COLUMNS} rows={items} id={(entry) => String(entry.seq)} edge={edge} />
        )}
      </Listed>
    </section>
  );
}

const edge = (entry: LedgerEntry) => (entry.kind === "reversal" ? "undo" : undefined);

const COLUMNS: Column<LedgerEntry>[] = [
  { head: "Entry", cell: (entry) => <strong>{entry.seq}</strong>, title: true },
  {
    head: "Kind",
    cell: (entry) => (
      <>
        {entry.kind}
        {entry.reverses && <span className="subject">takes back {entry.reverses}</span>}
      </>
    ),
  },
  { head: "For", cell: (entry) => used(entry) },
  { head: "Of", cell: (entry) => (entry.app_instance_id ?? entry.allocation_id)?.slice(-12), className: "id" },
  { head: "Window", cell: (entry) => entry.window_start && dayAndTime(entry.window_start), className: "nowrap" },
  {
    head: "Amount",
    cell: (entry) => (
      <span className={entry.amount_minor > 0 ? "tone-good" : undefined}>
        {money(entry.amount_minor, entry.currency)}
      </span>
    ),
    className: "number nowrap",
  },
  { head: "Correlation id", cell: (entry) => <TraceLink id={entry.correlation_id} />, className: "id clip" },
  {
    head: "Hash",
    cell: (entry) => <span title={entry.hash}>{entry.hash.slice(0, 12)}</span>,
    className: "id",
    wide: true,
  },
];

function used({ quantity: amount, usage_unit: unit }: LedgerEntry): string | null {
  return amount !== null && amount !== undefined && unit ? quantity(amount, unit) : null;
}
