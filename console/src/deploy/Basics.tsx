// What every app asks: a name, where to run, how much of it, and which variant and mode where there is a choice.
import { useAllocations } from "../api/queries";
import type { Allocation, Explanation, Manifest } from "../api/types";
import { usePlace } from "../shell/Shell";
import { RESOURCES, type Wish } from "./wish";

interface Props {
  wish: Wish;
  explained: Explanation;
  manifest: Manifest;
  onChange: (wish: Wish) => void;
}

export function Basics({ wish, explained, manifest, onChange }: Props) {
  const allocations = useAllocations(usePlace(), { status: "active" }).data ?? [];
  const set = (change: Partial<Wish>) => onChange({ ...wish, ...change });
  const profile = manifest.version.runtime_profile;
  return (
    <div className="columns">
      <label className="field">
        Name
        <input required maxLength={200} value={wish.name} onChange={(event) => set({ name: event.target.value })} />
      </label>
      <label className="field">
        Allocation
        <select value={wish.allocation} onChange={(event) => set({ allocation: event.target.value })}>
          <option value="">the first that fits</option>
          {allocations.map((one) => (
            <option key={one.id} value={one.id}>
              {named(one)}
            </option>
          ))}
        </select>
      </label>
      <Amounts wish={wish} explained={explained} set={set} />
      <Modes wish={wish} explained={explained} set={set} />
      {(profile?.variants ?? []).length > 0 && (
        <label className="field">
          Variant
          <select value={wish.variant} onChange={(event) => set({ variant: event.target.value })}>
            <option value="">as the node's accelerator needs it</option>
            {profile?.variants?.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
        </label>
      )}
      {(profile?.packages ?? []).length > 0 && (
        <label className="field">
          More packages <span className="quiet">one per line</span>
          <textarea rows={3} value={wish.packages} onChange={(event) => set({ packages: event.target.value })} />
        </label>
      )}
    </div>
  );
}

function named(one: Allocation): string {
  const gpus = one.gpu_count > 0 ? `${one.gpu_count} × ${one.sku}, ` : "";
  return `${one.id.slice(-12)}: ${gpus}${one.cpu_cores} cores, ${one.memory_gib} GiB`;
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

function Modes({ wish, explained, set }: Part) {
  if (explained.supported.length < 2) return null;
  return (
    <label className="field">
      Mode
      <select
        value={JSON.stringify(wish.pair)}
        onChange={(event) => set({ pair: JSON.parse(event.target.value) as Wish["pair"] })}
      >
        {explained.supported.map((pair) => (
          <option key={JSON.stringify(pair)} value={JSON.stringify(pair)}>
            {pair.operating_mode.replaceAll("_", " ")} · {pair.control_plane_scope}
          </option>
        ))}
      </select>
    </label>
  );
}
