// What may be done with an artifact now: what its states allow, as the server says, and what this person holds.
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type Artifact, CHANNELS, type WorkflowHandle } from "../api/types";
import { usePlace } from "../shell/Shell";
import { type Act, Acts } from "../ui/Acts";
import { AskDialog } from "../ui/Ask";
import { type Uses, UsesList } from "./Uses";

type Verb = "verify" | "promote" | "deprecate" | "retire" | "revoke";

const ACTS: Record<Verb, Act> = {
  verify: {
    name: "Verify",
    needs: "apps.artifact.publish",
    tells: "Its bytes are hashed again, and its signature and provenance are checked as policy requires today.",
  },
  promote: {
    name: "Promote",
    needs: "apps.artifact.promote",
    looks: "primary",
    tells: "Trust is checked afresh and the channel's gates are asked; then versions may use it from that channel.",
  },
  deprecate: {
    name: "Deprecate",
    needs: "apps.artifact.deprecate",
    tells: "Nothing new should use it. What runs it goes on.",
  },
  retire: {
    name: "Retire",
    needs: "apps.artifact.retire",
    looks: "danger",
    tells: "Nothing new uses it from now on, and it is out of use for good. This cannot be taken back.",
  },
  revoke: {
    name: "Revoke",
    needs: "apps.artifact.revoke",
    looks: "danger",
    tells:
      "All trust is taken back, at once and for good: nothing can be deployed from it. Instances that run it say so.",
  },
};

export function ArtifactActions({ artifact, path }: { artifact: Artifact; path: string }) {
  return (
    <Acts
      acts={ACTS}
      allowed={artifact.allowed_actions}
      ask={(verb, onClose) => <Question key={verb} verb={verb} artifact={artifact} path={path} onClose={onClose} />}
    />
  );
}

interface Asking {
  verb: Verb;
  artifact: Artifact;
  path: string;
  onClose: () => void;
}

function Question({ verb, artifact, path, onClose }: Asking) {
  const place = usePlace();
  const navigate = useNavigate();
  const [channel, setChannel] = useState<string>(CHANNELS.find((one) => !artifact.channels.includes(one)) ?? "dev");
  const [when, setWhen] = useState("unused");
  const act = ACTS[verb];
  const bodies: Partial<Record<Verb, Record<string, unknown>>> = { promote: { channel }, retire: { when } };
  return (
    <AskDialog<{ workflow?: WorkflowHandle }>
      title={`${act.name} ${artifact.app_slug} ${artifact.app_version} ${artifact.artifact_name}?`}
      confirm={act.name}
      danger={act.looks === "danger"}
      path={`${path}/${verb}`}
      body={bodies[verb] ?? {}}
      reasoned
      renews={["artifact", "artifacts", "gates"]}
      onDone={({ workflow }) => {
        // What takes time is a run; it is watched where every run is.
        if (workflow) void navigate({ to: "/$place/runs/$run", params: { place: place.id, run: workflow.id } });
      }}
      obstacles={({ references }) => <UsesList uses={references as Uses | undefined} />}
      onClose={onClose}
    >
      <p>{act.tells}</p>
      {verb === "retire" && (
        <label className="field">
          When
          <select value={when} onChange={(event) => setWhen(event.target.value)}>
            <option value="unused">once the grace period is over and nothing uses it</option>
            <option value="now">now, or not at all</option>
          </select>
        </label>
      )}
      {verb === "promote" && (
        <label className="field">
          Channel
          <select value={channel} onChange={(event) => setChannel(event.target.value)}>
            {CHANNELS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      )}
    </AskDialog>
  );
}
