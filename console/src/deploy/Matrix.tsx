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
  { head: "What is asked, and what is there", cell: (row) => <Why row={row} /> },
];

/** What is not there comes first. */
function Why({ row }: { row: PlacementRow }) {
  const all = [...row.predicates.filter((one) => !one.holds), ...row.predicates.filter((one) => one.holds)];
  return (
    <ul className="predicates">
      {all.map((one) => (
        <li key={one.name} className={one.holds ? "quiet" : "tone-bad"}>
          <span aria-hidden="true">{one.holds ? "✓" : "✗"}</span>
          <span>
            <strong>{one.name.replaceAll("_", " ")}</strong>: {one.required} is asked, {one.actual} is there
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The matrix inside a refusal, if it brought one. */
export function matrixOf(details: Record<string, unknown>): PlacementRow[] | null {
  return Array.isArray(details.matrix) ? (details.matrix as PlacementRow[]) : null;
}
