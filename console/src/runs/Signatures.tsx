// Runs that failed alike, together: repair the cause once, then retry all of them. The server says first what it would do.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../api/client";
import type { BulkRetry, BulkRetryReport, Run } from "../api/types";
import { counted } from "../runtime";
import { Copy, curl } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { type Narrowed, type Signature, signaturesOf, wishOf } from "./alike";

export function Signatures({ runs, narrowed }: { runs: Run[]; narrowed: Narrowed }) {
  const [chosen, choose] = useState<Signature | null>(null);
  const signatures = signaturesOf(runs);
  if (signatures.length === 0) return null;
  return (
    <section className="signatures" aria-label="Failures alike">
      {signatures.map((signature) => (
        <article key={`${signature.kind} ${signature.cause} ${signature.code}`}>
          <span className="count">{signature.ids.length}</span>
          <div>
            <strong>{signature.kind}</strong> {whyOf(signature)}
            {signature.code && <p className="id">{signature.example}</p>}
          </div>
          <button type="button" onClick={() => choose(signature)}>
            Retry all alike
          </button>
        </article>
      ))}
      {chosen && <BulkDialog signature={chosen} narrowed={narrowed} onClose={() => choose(null)} />}
    </section>
  );
}

const whyOf = ({ cause }: Signature) => cause?.replaceAll("_", " ") ?? "failed";

interface Asking {
  signature: Signature;
  narrowed: Narrowed;
  onClose: () => void;
}

function BulkDialog({ signature, narrowed, onClose }: Asking) {
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const body: BulkRetry = { ...wishOf(signature, narrowed), dry_run: false };
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
  const would = seen?.results.filter((result) => result.verdict === "would_retry").length ?? 0;
  const refused = seen?.results.filter((result) => result.verdict === "refused") ?? [];
  return (
    <Dialog
      title={`Retry ${signature.kind}: ${whyOf(signature)}`}
      confirm={seen ? `Retry ${counted(would, "run")}` : "Show what would happen"}
      busy={preview.isPending || retry.isPending}
      error={preview.error ?? retry.error}
      curl={<Copy text={curl("POST", "/admin/workflows/bulk-retry", body)} label="Copy as curl" />}
      onConfirm={() => (seen ? retry.mutate() : preview.mutate())}
      onClose={onClose}
    >
      <p>
        <Which signature={signature} />
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

function Which({ signature: { cause, code, ids } }: { signature: Signature }) {
  if (!code && cause) {
    return `${counted(ids.length, "run")} of this kind, which rest for this cause without an error, are retried: those that are listed below.`;
  }
  if (!code) return `${counted(ids.length, "run")} of this kind, which failed without a code, are begun anew.`;
  if (!cause) {
    return (
      <>
        Every run of this kind that failed with <code>{code}</code> in its error, and was not tried again since, is
        begun anew: also those that are not on this page.
      </>
    );
  }
  return (
    <>
      Every run of this kind that rests for this cause with <code>{code}</code> in its error is retried from its failed
      step, also those that are not on this page.
    </>
  );
}
