// Runs that failed alike, together: repair the cause once, then retry all of them. The server says first what it would do.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../api/client";
import type { BulkRetry, BulkRetryReport, Run, StuckCode } from "../api/types";
import { Copy, curl } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { errorText } from "./RunTable";

interface Signature {
  kind: string;
  cause: StuckCode;
  error: string | null;
  count: number;
}

export function signaturesOf(runs: Run[]): Signature[] {
  const found = new Map<string, Signature>();
  for (const run of runs) {
    if (!run.stuck_cause || (run.status !== "paused" && run.status !== "stuck")) continue;
    const error = run.error ? errorText(run.error) : null;
    const key = JSON.stringify([run.kind, run.stuck_cause.code, error]);
    const known = found.get(key) ?? { kind: run.kind, cause: run.stuck_cause.code, error, count: 0 };
    found.set(key, { ...known, count: known.count + 1 });
  }
  return [...found.values()].sort((one, other) => other.count - one.count);
}

export function Signatures({ runs }: { runs: Run[] }) {
  const [chosen, choose] = useState<Signature | null>(null);
  const signatures = signaturesOf(runs);
  if (signatures.length === 0) return null;
  return (
    <section className="signatures" aria-label="Failures alike">
      {signatures.map((signature) => (
        <article key={`${signature.kind} ${signature.cause} ${signature.error}`}>
          <span className="count">{signature.count}</span>
          <div>
            <strong>{signature.kind}</strong> {signature.cause.replaceAll("_", " ")}
            {signature.error && <p className="id">{signature.error}</p>}
          </div>
          <button type="button" onClick={() => choose(signature)}>
            Retry all alike
          </button>
        </article>
      ))}
      {chosen && <BulkDialog signature={chosen} onClose={() => choose(null)} />}
    </section>
  );
}

function BulkDialog({ signature, onClose }: { signature: Signature; onClose: () => void }) {
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const code = signature.error?.split(": ")[0];
  const error_signature = code && code.length >= 3 ? code : undefined;
  const body: BulkRetry = { filter: { kind: signature.kind, cause: signature.cause, error_signature }, dry_run: false };
  const preview = useMutation({
    mutationFn: () => post<BulkRetryReport>("/admin/workflows/bulk-retry", { ...body, dry_run: true }, `${key}-dry`),
  });
  const retry = useMutation({
    mutationFn: () => post<BulkRetryReport>("/admin/workflows/bulk-retry", body, key),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["runs"] });
      onClose();
    },
  });
  const seen = preview.data;
  const would = seen?.results.filter((result) => result.verdict === "would_retry").length;
  const refused = seen?.results.filter((result) => result.verdict === "refused") ?? [];
  return (
    <Dialog
      title={`Retry ${signature.kind} that ${signature.cause.replaceAll("_", " ")}`}
      confirm={seen ? `Retry ${would} run${would === 1 ? "" : "s"}` : "Show what would happen"}
      busy={preview.isPending || retry.isPending}
      error={preview.error ?? retry.error}
      curl={<Copy text={curl("POST", "/admin/workflows/bulk-retry", body)} label="Copy as curl" />}
      onConfirm={() => (seen ? retry.mutate() : preview.mutate())}
      onClose={onClose}
    >
      <p>
        Every run of this kind that rests for this cause
        {error_signature ? (
          <>
            {" "}
            with <code>{error_signature}</code> in its error
          </>
        ) : null}{" "}
        is retried from its failed step.
      </p>
      {seen && (
        <p role="status">
          {would} would go on{refused.length > 0 && `, ${refused.length} would be refused: ${refused[0]?.message}`}
          {seen.more && "; more match than are retried at once"}.
        </p>
      )}
    </Dialog>
  );
}
