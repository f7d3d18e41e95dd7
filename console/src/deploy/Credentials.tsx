// The secrets that a version asks for: each class is given one that the project keeps. What is in them is never shown.
import type { Explanation } from "../api/types";
import { useAccessCredentials } from "../api/whole";
import { usePlace } from "../shell/Shell";
import { NotAll } from "../ui/NotAll";

interface Props {
  needs: Explanation["credentials"];
  value: Record<string, string>;
  onChange: (value: Record<string, string>) => void;
}

export function Credentials({ needs, value, onChange }: Props) {
  const kept = useAccessCredentials(usePlace(), needs.length > 0).data;
  const usable = (kept?.items ?? []).filter((one) => one.status === "active" && one.kind === "secret");
  if (needs.length === 0) return null;
  return (
    <section className="panel" aria-label="Credentials">
      <h2>Credentials</h2>
      <div className="columns">
        {needs.map((need) => (
          <label key={need.class} className="field">
            {need.class.replaceAll("_", " ")} <span className="quiet">as {need.env}</span>
            <select
              required={need.required}
              value={value[need.class] ?? ""}
              onChange={(event) => onChange({ ...value, [need.class]: event.target.value })}
            >
              <option value="">{need.required ? "choose one" : "none"}</option>
              {usable.map((one) => (
                <option key={one.id} value={one.id}>
                  {one.name}
                </option>
              ))}
            </select>
            {need.description && <span className="subject">{need.description}</span>}
          </label>
        ))}
      </div>
      <NotAll of={kept} what="credentials" />
      {usable.length === 0 && <p className="quiet">No secret of this project can be chosen by you yet.</p>}
    </section>
  );
}
