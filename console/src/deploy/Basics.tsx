// What every app asks: a name, where to run, how much of it, and which variant, mode and port where there is a choice.
import type { ReactNode } from "react";
import type { Allocation, Artifact, Explanation, Manifest } from "../api/types";
import { allocationName } from "./placement";
import { RESOURCES, type Wish } from "./wish";

interface Props {
  wish: Wish;
  explained: Explanation;
  manifest: Manifest["version"];
  /** What it can be placed on; nothing where the version asks for its place itself. */
  allocations: Allocation[] | null;
  /** What can be run instead of what is frozen for the version. */
  artifacts: Artifact[];
  set: (change: Partial<Wish>) => void;
}

export function Basics({ wish, explained, manifest, allocations, artifacts, set }: Props) {
  const profile = manifest.runtime_profile;
  return (
    <div className="columns">
      <label className="field">
        Name
        <input required maxLength={200} value={wish.name} onChange={(event) => set({ name: event.target.value })} />
      </label>
      {allocations && (
        <Select label="Allocation" value={wish.allocation} onChange={(allocation) => set({ allocation })}>
          <option value="">the first that fits</option>
          {allocations.map((one) => (
            <option key={one.id} value={one.id}>
              {allocationName(one)}
            </option>
          ))}
        </Select>
      )}
      <Amounts wish={wish} explained={explained} set={set} />
      <Port wish={wish} explained={explained} set={set} />
      <Modes wish={wish} explained={explained} set={set} />
      {(profile?.variants ?? []).length > 0 && (
        <Select label="Variant" value={wish.variant} onChange={(variant) => set({ variant })}>
          <option value="">as the node's accelerator needs it</option>
          {profile?.variants?.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </Select>
      )}
      {artifacts.length > 0 && (
        <Select label="Artifact" value={wish.artifact} onChange={(artifact) => set({ artifact })}>
          <option value="">as frozen for the version</option>
          {artifacts.map((one) => (
            <option key={one.id} value={one.id}>
              {[one.artifact_name, one.variant, `${one.digest.slice(0, 19)}…`].filter(Boolean).join(" · ")}
            </option>
          ))}
        </Select>
      )}
      {/* A list, even an empty one, means that a launch may add its own. */}
      {profile?.packages && (
        <label className="field">
          More packages <span className="quiet">one per line</span>
          <textarea rows={3} value={wish.packages} onChange={(event) => set({ packages: event.target.value })} />
        </label>
      )}
    </div>
  );
}

interface Choosing {
  label: string;
  value: string;
  onChange: (value: string) => void;
  children: ReactNode;
}

function Select({ label, value, onChange, children }: Choosing) {
  return (
    <label className="field">
      {label}
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {children}
      </select>
    </label>
  );
}

interface Part {
  wish: Wish;
  explained: Explanation;
  set: (change: Partial<Wish>) => void;
}

function Amounts({ wish, explained, set }: Part) {
  return RESOURCES.map(([name, label]) => {
    const amount = explained.needs[name];
    if (!amount || amount.max === 0 || amount.min === amount.max) return null;
    return (
      <label key={name} className="field">
        {label}{" "}
        <span className="quiet">
          {amount.min} to {amount.max ?? "any"}
        </span>
        <input
          type="number"
          min={amount.min}
          max={amount.max ?? undefined}
          value={wish.resources[name] ?? ""}
          placeholder={String(amount.default)}
          onChange={(event) => set({ resources: { ...wish.resources, [name]: event.target.value } })}
        />
      </label>
    );
  });
}

/** On the node, for the first port that the app listens on. */
function Port({ wish, explained, set }: Part) {
  const port = explained.ports[0];
  if (!port) return null;
  return (
    <label className="field">
      Port on the node <span className="quiet">for {port.name}</span>
      <input
        type="number"
        min={1024}
        max={65535}
        value={wish.resources.host_port ?? ""}
        placeholder="a free one"
        onChange={(event) => set({ resources: { ...wish.resources, host_port: event.target.value } })}
      />
    </label>
  );
}

function Modes({ wish, explained, set }: Part) {
  if (explained.supported.length < 2) return null;
  const at = explained.supported.findIndex((pair) => JSON.stringify(pair) === JSON.stringify(wish.pair));
  return (
    <Select
      label="Mode"
      value={at < 0 ? "" : String(at)}
      onChange={(chosen) => set({ pair: chosen === "" ? undefined : explained.supported[Number(chosen)] })}
    >
      <option value="">the first that the project may use</option>
      {explained.supported.map((pair, place) => (
        <option key={JSON.stringify(pair)} value={place}>
          {pair.operating_mode.replaceAll("_", " ")} · {pair.control_plane_scope}
        </option>
      ))}
    </Select>
  );
}
