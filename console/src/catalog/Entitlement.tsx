// What the project may do with an app: what is left after every layer had its say, and which layer took what away.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { oneOptions, SELDOM } from "../api/queries";
import type { EffectiveEntitlement, Entitlement } from "../api/types";
import { useEntitlements } from "../api/whole";
import { may } from "../place";
import { counted } from "../runtime";
import { usePlace } from "../shell/Shell";
import { Ask, AskDialog } from "../ui/Ask";
import { Facts } from "../ui/Facts";
import { Problem } from "../ui/Feedback";
import { StateWord } from "../ui/State";

export function EntitlementPanel({ slug }: { slug: string }) {
  const place = usePlace();
  const path = `${place.path}/apps/entitlements/${slug}`;
  const effective = useQuery(oneOptions<EffectiveEntitlement>("effective", `${path}/effective`, SELDOM));
  const given = useEntitlements(place).data?.items.find((one) => one.app_slug === slug);
  if (effective.error) return <Problem error={effective.error} again={() => void effective.refetch()} />;
  if (!effective.data) return null;
  const policy = effective.data;
  return (
    <section className="panel" aria-label="Entitlement">
      <header>
        <h2>Entitlement</h2>
        {given || policy.enabled ? (
          <StateWord state={policy.enabled ? "active" : "disabled"} />
        ) : (
          <span className="chip">not entitled</span>
        )}
        <span className="spring" />
        {may(place, "apps.entitlement.manage") && <Buttons slug={slug} path={path} given={given} policy={policy} />}
      </header>
      <p>{policy.notice}</p>
      <Facts
        facts={[
          ["Modes and scopes", <Pairs key="pairs" policy={policy} />],
          [
            "GPUs per instance",
            policy.max_gpu_count == null ? "as many as the allocation has" : `at most ${policy.max_gpu_count}`,
          ],
          ["Instances here", String(policy.instances)],
          ["Refused now", policy.blocked_actions.length > 0 ? policy.blocked_actions.join(", ") : null],
        ]}
      />
      <Removed policy={policy} />
    </section>
  );
}

const LAYERS = {
  manifest: "The app itself",
  platform: "The platform",
  org: "The organization",
  project: "This project",
};

/** What is not allowed, one line for each layer that does not allow it. */
function Removed({ policy }: { policy: EffectiveEntitlement }) {
  const layers = (Object.keys(LAYERS) as (keyof typeof LAYERS)[]).map((layer) => ({
    layer,
    taken: policy.removed.filter((one) => one.layer === layer),
  }));
  return (
    <ul className="removed" aria-label="What is not allowed">
      {layers
        .filter(({ taken }) => taken.length > 0)
        .map(({ layer, taken }) => (
          <li key={layer}>
            {LAYERS[layer]} does not allow{" "}
            {taken.map((one) => (
              <span key={JSON.stringify(one)} className="chip">
                {removal(one)}
              </span>
            ))}
          </li>
        ))}
    </ul>
  );
}

function removal(one: EffectiveEntitlement["removed"][number]): string {
  if (one.field === "max_gpu_count") return `more than ${counted(Number(one.value), "GPU")}`;
  const value = words(String(one.value));
  return one.field === "allowed_operating_modes" ? `mode ${value}` : `scope ${value}`;
}

const words = (text: string) => text.replaceAll("_", " ");

function Pairs({ policy }: { policy: EffectiveEntitlement }) {
  if (policy.allowed_pairs.length === 0) return <span className="tone-bad">none is left</span>;
  return policy.allowed_pairs.map((pair) => (
    <span key={`${pair.operating_mode} ${pair.control_plane_scope}`} className="chip">
      {words(pair.operating_mode)} · {pair.control_plane_scope}
    </span>
  ));
}

interface Given {
  slug: string;
  path: string;
  given: Entitlement | undefined;
  policy: EffectiveEntitlement;
}

const RENEWS = ["entitlements", "effective", "apps"];

function Buttons({ slug, path, given, policy }: Given) {
  const [narrowing, setNarrowing] = useState(false);
  const overrides = given?.policy_overrides ?? {};
  const entitle = policy.enabled ? "Switch off" : "Entitle the project";
  return (
    <fieldset className="actions" aria-label="Entitlement actions">
      {policy.enabled && (
        <button type="button" onClick={() => setNarrowing(true)}>
          Narrow
        </button>
      )}
      <Ask
        label={entitle}
        primary={!policy.enabled}
        danger={policy.enabled}
        title={policy.enabled ? `Switch ${slug} off for this project?` : `Entitle this project to ${slug}?`}
        confirm={entitle}
        method="PUT"
        path={path}
        body={{ enabled: !policy.enabled, policy_overrides: overrides }}
        reasoned
        cli={`gpuaas entitle ${slug}${policy.enabled ? " --off" : ""}`}
        renews={RENEWS}
      >
        <p>
          {policy.enabled
            ? "No new instances, upgrades or rollbacks from this moment. Instances that run go on."
            : "Its people may deploy every version that is rolled out to it, within its policies."}
        </p>
      </Ask>
      {narrowing && <Narrow slug={slug} path={path} overrides={overrides} onClose={() => setNarrowing(false)} />}
    </fieldset>
  );
}

interface Narrowing {
  slug: string;
  path: string;
  overrides: Entitlement["policy_overrides"];
  onClose: () => void;
}

/** Overrides only take away, so the one that people ask for is the number of GPUs. */
function Narrow({ slug, path, overrides, onClose }: Narrowing) {
  const [gpus, setGpus] = useState(overrides.max_gpu_count?.toString() ?? "");
  const max_gpu_count = gpus === "" ? null : Number(gpus);
  return (
    <AskDialog
      title={`Narrow what ${slug} may use here`}
      confirm="Set"
      method="PUT"
      path={path}
      body={{ enabled: true, policy_overrides: { ...overrides, max_gpu_count } }}
      reasoned
      renews={RENEWS}
      onClose={onClose}
    >
      <p>The project can only take away from what the platform and the app allow.</p>
      <label className="field">
        GPUs per instance, at most <span className="quiet">empty for no limit of the project's own</span>
        <input type="number" min={0} max={65536} value={gpus} onChange={(event) => setGpus(event.target.value)} />
      </label>
    </AskDialog>
  );
}
