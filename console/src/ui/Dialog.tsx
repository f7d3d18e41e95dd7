// A question before something happens. The browser's own dialog keeps the focus inside and gives it back afterwards.
import { type FormEvent, type ReactNode, useEffect, useRef } from "react";
import { Problem } from "./Feedback";

interface Props {
  title: string;
  confirm: string;
  danger?: boolean;
  busy: boolean;
  error: unknown;
  /** What stands in the way, under what was said of it. */
  obstacles?: ReactNode;
  curl?: ReactNode;
  children: ReactNode;
  onConfirm: () => void;
  onClose: () => void;
}

export function Dialog({ title, confirm, danger, busy, error, obstacles, curl, children, onConfirm, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!busy) onConfirm();
  };
  return (
    <dialog ref={dialog} onCancel={onClose} aria-labelledby="dialog-title">
      <form onSubmit={submit}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {error ? <Problem error={error} /> : null}
        {error ? obstacles : null}
        <footer>
          {curl}
          <span className="spring" />
          <button type="button" onClick={onClose}>
            Not now
          </button>
          <button type="submit" className={danger ? "danger" : "primary"} disabled={busy}>
            {busy ? "Asking…" : confirm}
          </button>
        </footer>
      </form>
    </dialog>
  );
}
