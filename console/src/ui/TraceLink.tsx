// A correlation id that leads to everything under it.
import { Link } from "@tanstack/react-router";
import { usePlace } from "../shell/Shell";

export function TraceLink({ id, children }: { id: string; children?: React.ReactNode }) {
  const place = usePlace();
  return (
    <Link to="/$place/trace" params={{ place: place.id }} search={{ correlation_id: id }} title="Trace this id">
      {children ?? id}
    </Link>
  );
}
