// A button for something that changes the world: it says what will happen, takes a reason for the log, and can be copied
// as the same request for a terminal. Each opening has a key of its own, so that a second click is no second deed.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { ApiError, change } from "../api/client";
import { Copy, curl } from "./Copy";
import { Dialog } from "./Dialog";

export interface Wish {
  title: string;
  confirm: string;
  path: string;
  method?: string;
  body?: Record<string, unknown>;
  danger?: boolean;
  /** Whether the route takes a reason. */
  reasoned?: boolean;
  /** The same by the command line, where it has a verb for it. */
  cli?: string;
  /** The first word of every query that is different afterwards. */
  renews: string[];
}

interface Props<A> extends Wish {
  children: ReactNode;
  onDone?: (answer: A) => void;
  /** What a refusal names as standing in the way. */
  obstacles?: (details: Record<string, unknown>) => ReactNode;
}

export function Ask<A = unknown>({ label, primary, ...wish }: Props<A> & { label: string; primary?: boolean }) {
  const [open, setOpen] = useState(false);
  const look = wish.danger ? "danger" : primary ? "primary" : undefined;
  return (
    <>
      <button type="button" className={look} onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && <AskDialog {...wish} onClose={() => setOpen(false)} />}
    </>
  );
}

export function AskDialog<A>({ onClose, onDone, obstacles, children, ...wish }: Props<A> & { onClose: () => void }) {
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const [reason, setReason] = useState("");
  const { method = "POST", path, renews } = wish;
  const told = { ...wish.body, ...(reason.trim() ? { reason: reason.trim() } : {}) };
  const body = method === "DELETE" ? undefined : told;
  const ask = useMutation({
    mutationFn: () => change<A>(method, path, body, key),
    onSuccess: (answer) => {
      for (const name of renews) void client.invalidateQueries({ queryKey: [name] });
      onClose();
      onDone?.(answer);
    },
  });
  return (
    <Dialog
      title={wish.title}
      confirm={wish.confirm}
      danger={wish.danger}
      busy={ask.isPending}
      error={ask.error}
      obstacles={ask.error instanceof ApiError && obstacles?.(ask.error.details)}
      curl={
        <>
          {wish.cli && <Copy text={wish.cli} label="Copy as CLI" />}
          <Copy text={curl(method, path, body)} label="Copy as curl" />
        </>
      }
      onConfirm={() => ask.mutate()}
      onClose={onClose}
    >
      {children}
      {wish.reasoned && (
        <label className="field">
          Reason <span className="quiet">for whoever reads the log</span>
          <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
        </label>
      )}
    </Dialog>
  );
}
