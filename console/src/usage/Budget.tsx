// What is left, what was spent this month, and what the project means to spend; who manages the budget may change it.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change } from "../api/client";
import { oneOptions, SELDOM } from "../api/queries";
import type { Balance, Budget, BudgetAction, BudgetMode } from "../api/types";
import { may } from "../place";
import { counted } from "../runtime";
import { usePlace } from "../shell/Shell";
import { ago } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { useNow } from "../ui/now";
import { digitsOf, minorUnits, money } from "./amounts";

const ACTIONS: Record<BudgetAction, string> = {
  warn: "tell, and go on",
  deny_new: "refuse new instances",
  stop: "decommission what runs",
};
const MODES: Record<BudgetMode, string> = {
  simulate: "only say what it would do",
  enforce: "do it",
};

export function BudgetPanel() {
  const place = usePlace();
  const budget = useQuery(oneOptions<Budget>("budget", `${place.path}/budget`, SELDOM));
  const balance = useQuery(oneOptions<Balance>("balance", `/billing/balance?project_id=${place.id}`, SELDOM));
  const [setting, setSetting] = useState(false);
  const error = budget.error ?? balance.error;
  if (error && (!budget.data || !balance.data)) return <Problem error={error} />;
  if (!budget.data || !balance.data) return <Loading what="the budget" />;
  return (
    <section className="panel" aria-label="Budget">
      <header>
        <h2>This month</h2>
        <span className="spring" />
        {may(place, "billing.budget.manage") && (
          <button type="button" onClick={() => setSetting(true)}>
            Set the budget
          </button>
        )}
      </header>
      <Standing budget={budget.data} balance={balance.data} />
      {setting && <SetBudget budget={budget.data} path={`${place.path}/budget`} onClose={() => setSetting(false)} />}
    </section>
  );
}

function Standing({ budget, balance }: { budget: Budget; balance: Balance }) {
  const now = useNow(1000);
  const currency = budget.currency ?? balance.currency;
  const { amount_minor: amount, spent_minor: spent, would } = budget;
  // Before anything was charged there is no balance to be low.
  const isLow = balance.is_low && balance.entries > 0;
  const limited = amount !== null && amount !== undefined;
  const effects = [
    would.deny_new && "new instances would be refused",
    would.stop.length > 0 && `${counted(would.stop.length, "instance")} would be decommissioned`,
  ].filter(Boolean);
  return (
    <>
      {limited && (
        <Spent
          part={amount > 0 ? spent / amount : 1}
          text={`${money(spent, currency)} of ${money(amount, currency)}`}
        />
      )}
      <Facts
        facts={[
          ["Spent", money(spent, currency)],
          ["Budget", limited ? money(amount, currency) : "no limit"],
          ["When it is reached", limited ? ACTIONS[budget.action] : null],
          ["Mode", limited ? budget.mode : null],
          [
            "Balance",
            <span key="balance" className={isLow ? "tone-bad" : undefined}>
              {money(balance.balance_minor, balance.currency)}
              {isLow && " · low"}
            </span>,
          ],
          ["Ledger", counted(balance.entries, "entry", "entries")],
          ["Charged up to", ago(balance.rated_until, now)],
        ]}
      />
      {budget.is_exceeded && (
        <p className="tone-bad" role="status">
          The budget is reached
          {effects.length > 0 && budget.mode === "simulate" ? `; if it were enforced, ${effects.join(" and ")}` : ""}.
        </p>
      )}
    </>
  );
}

function Spent({ part, text }: { part: number; text: string }) {
  const width = Math.min(1, part) * 100;
  return (
    <svg className="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={`${text} is spent`}>
      <rect className="ground" width="100" height="6" />
      <rect className={part >= 1 ? "bad" : "good"} width={width} height="6" />
    </svg>
  );
}

function SetBudget({ budget, path, onClose }: { budget: Budget; path: string; onClose: () => void }) {
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const digits = budget.currency ? digitsOf(budget.currency) : 2;
  const before = budget.amount_minor;
  const [amount, setAmount] = useState(typeof before === "number" ? (before / 10 ** digits).toFixed(digits) : "");
  const [action, setAction] = useState<BudgetAction>(budget.action);
  const [mode, setMode] = useState<BudgetMode>(budget.mode);
  const [reason, setReason] = useState("");
  const minor = amount.trim() === "" ? null : minorUnits(amount, budget.currency);
  const wrong = amount.trim() !== "" && minor === null;
  const body = { amount_minor: minor, action, mode, ...(reason.trim() ? { reason: reason.trim() } : {}) };
  const set = useMutation({
    mutationFn: () => change<Budget>("PUT", path, body, key),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["budget"] });
      onClose();
    },
  });
  return (
    <Dialog
      title="Set the budget of a month"
      confirm="Set"
      busy={set.isPending}
      error={set.error}
      curl={<Copy text={curl("PUT", path, body)} label="Copy as curl" />}
      onConfirm={() => !wrong && set.mutate()}
      onClose={onClose}
    >
      <label className="field">
        At most a month{" "}
        <span className="quiet">{budget.currency ? `in ${budget.currency}; empty: no limit` : "empty: no limit"}</span>
        <input
          inputMode="decimal"
          value={amount}
          aria-invalid={wrong}
          onChange={(event) => setAmount(event.target.value)}
        />
        {wrong && <span className="tone-bad">An amount such as 250 or 99.50.</span>}
      </label>
      <label className="field">
        When it is reached
        <select value={action} onChange={(event) => setAction(event.target.value as BudgetAction)}>
          {Object.entries(ACTIONS).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        Mode
        <select value={mode} onChange={(event) => setMode(event.target.value as BudgetMode)}>
          {Object.entries(MODES).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        Reason <span className="quiet">for whoever reads the log</span>
        <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
      </label>
    </Dialog>
  );
}
