// A table told by its columns. On a small screen each line becomes a block, and every value carries its column's name.
import { Fragment, type ReactNode } from "react";

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  className?: string;
  /** What the line is about: it needs no name beside it where there is little room. */
  title?: boolean;
  /** Not worth its room on a small screen. */
  wide?: boolean;
}

interface Props<T> {
  /** What the table holds, for those who hear it. */
  label: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T) => string;
  /** The tone of the line's edge, where it needs a look. */
  edge?: (row: T) => string | undefined;
  /** What stands under a line that is open. */
  detail?: (row: T) => ReactNode;
}

export function Table<T>({ label, columns, rows, id, edge, detail }: Props<T>) {
  return (
    <div className="scroll">
      <table className="list" aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" className={headClass(column.className)}>
                {column.className === "buttons" ? <span className="sr">{column.head}</span> : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const below = detail?.(row);
            const tone = edge?.(row);
            return (
              <Fragment key={id(row)}>
                <tr className={tone ? `edge-${tone}` : undefined}>
                  {columns.map((column) => (
                    <Cell key={column.head} column={column} row={row} />
                  ))}
                </tr>
                {below && (
                  <tr className="detail">
                    <td colSpan={columns.length}>{below}</td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** Of a column's look, its head takes the side on which it stands. */
function headClass(className: string | undefined) {
  return className?.split(" ").includes("number") ? "number" : undefined;
}

function Cell<T>({ column, row }: { column: Column<T>; row: T }) {
  const shown = column.cell(row);
  const empty = shown === null || shown === undefined || shown === "" || shown === false;
  const looks = [column.className, column.wide && "wide-only", column.title && "title", empty && "void"];
  return (
    <td className={looks.filter(Boolean).join(" ") || undefined} data-head={column.title ? undefined : column.head}>
      {shown}
    </td>
  );
}
