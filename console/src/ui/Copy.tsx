// Something worth copying: a click puts it on the clipboard and says so for a moment.
import { type ReactNode, useEffect, useState } from "react";

export function Copy({ text, label, children }: { text: string; label: string; children?: ReactNode }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1600);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true));
  return (
    <button type="button" className="copy" onClick={copy} title={label}>
      {children ?? label}
      <span className="copied" role="status">
        {copied ? "copied" : ""}
      </span>
    </button>
  );
}

/** The same request for a terminal. The token stays out of it: the shell's own variable stands for it. */
export function curl(method: string, path: string, body?: unknown): string {
  const parts = [`curl -X ${method} '${location.origin}/api/v1${path}'`, `-H "Authorization: Bearer $GPUAAS_TOKEN"`];
  if (method !== "GET") parts.push(`-H "X-Idempotency-Key: $(uuidgen)"`);
  if (body !== undefined)
    parts.push("-H 'Content-Type: application/json'", `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`);
  return parts.join(" \\\n  ");
}
