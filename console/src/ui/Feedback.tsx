// What stands where data should be: still loading, nothing there, or what went wrong and what to do about it.
import type { ReactNode } from "react";
import { ApiError } from "../api/client";
import { Copy } from "./Copy";

export function Loading({ what }: { what: string }) {
  return (
    <div className="feedback" role="status">
      <span className="pulse" aria-hidden="true" />
      Loading {what}…
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="feedback empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

export function Problem({ error, again }: { error: unknown; again?: () => void }) {
  const known = error instanceof ApiError ? error : null;
  return (
    <div className="feedback problem" role="alert">
      <strong>{known ? known.message : "Something in this page went wrong."}</strong>
      <p>
        {advice(known)}
        {known && <code>{known.code}</code>}
        {known?.correlationId && (
          <Copy text={known.correlationId} label="Copy the correlation id">
            <code>{known.correlationId}</code>
          </Copy>
        )}
      </p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

function advice(error: ApiError | null): string {
  if (!error) return "Open the page again; if it stays, tell the platform's team. ";
  if (error.status === 0) return "Check that the server runs and that you reach it. ";
  if (error.code === "entitlement_required") return "Ask an administrator to entitle this project to the app. ";
  if (error.status === 403) return "Ask somebody who manages members of this project for the permission. ";
  if (error.status === 404)
    return "It may have been removed, or belong to another project: choose another place above. ";
  if (error.status === 409) return "It changed while you looked. Look at its present state and decide again. ";
  if (error.status === 429) return "Too many requests within a minute; it goes on by itself. ";
  if (error.status >= 500) return "The log of the server has more under this id. ";
  return "";
}
