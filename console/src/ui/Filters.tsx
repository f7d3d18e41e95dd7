// Filters of a list. What is chosen goes to the address at once; what is written, when the writing is done.
import { useEffect, useState } from "react";

interface Named {
  label: string;
  value: string | undefined;
  onChange: (value: string | undefined) => void;
}

export function Choice({
  label,
  value,
  options,
  onChange,
  always = false,
}: Named & { options: readonly (string | [string, string])[] /** One of them always counts. */; always?: boolean }) {
  return (
    <label className="filter">
      <span>{label}</span>
      <select value={value ?? ""} onChange={(event) => onChange(event.target.value || undefined)}>
        {!always && <option value="">any</option>}
        {options.map((option) => {
          const [name, shown] = typeof option === "string" ? [option, option.replaceAll("_", " ")] : option;
          return (
            <option key={name} value={name}>
              {shown}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** What is left out until somebody wants it too. */
export function Also({ label, on, onChange }: { label: string; on: boolean; onChange: (on: boolean) => void }) {
  return (
    <label className="filter also">
      <input type="checkbox" checked={on} onChange={(event) => onChange(event.target.checked)} />
      <span>{label}</span>
    </label>
  );
}

export function Written({ label, value, onChange, placeholder }: Named & { placeholder?: string }) {
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  const done = () => {
    if (text.trim() !== (value ?? "")) onChange(text.trim() || undefined);
  };
  return (
    <label className="filter">
      <span>{label}</span>
      <input
        value={text}
        placeholder={placeholder ?? "any"}
        onChange={(event) => setText(event.target.value)}
        onBlur={done}
        onKeyDown={(event) => event.key === "Enter" && done()}
      />
    </label>
  );
}

export const SINCE: [string, string][] = [
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["24h", "24 hours"],
  ["7d", "7 days"],
];
