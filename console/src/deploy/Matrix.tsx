// Where it could run: every allocation against everything that is asked of it, so that nobody guesses why one does not fit.
import type { PlacementRow } from "../api/types";
import { type Column, Table } from "../ui/Table";

export function Matrix({ rows }: { rows: PlacementRow[] }) {
  return <Table label="Placement" columns={COLUMNS} rows={rows} id={(row) => row.allocation_id} edge={edge} />;
}

const edge = (row: PlacementRow) => (row.fits ? undefined : "bad");

const COLUMNS: Column<PlacementRow>[] = [
  { head: "Allocation", cell: (row) => <code>{row.allocation_id.slice(-12)}</code>, title: true },
  {
    head: "Fits",
    cell: (row) => <span className={row.fits ? "tone-good" : "tone-bad"}>{row.fits ? "yes" : "no"}</span>,
  },
  { head: "Why", cell: (row) => <Why row={row} />, className: "why" },
];

function Why({ row }: { row: PlacementRow }) {
  const failed = row.predicates.filter((one) => !one.holds);
  if (failed.length === 0) return <span className="quiet">everything that is asked is there</span>;
  return (
    <ul className="plain-list">
      {failed.map((one) => (
        <li key={one.name}>
          <strong>{one.name.replaceAll("_", " ")}</strong>: {one.required} is asked, {one.actual} is there
        </li>
      ))}
    </ul>
  );
}

/** The matrix inside a refusal, if it brought one. */
export function matrixOf(details: Record<string, unknown>): PlacementRow[] | null {
  return Array.isArray(details.matrix) ? (details.matrix as PlacementRow[]) : null;
}
