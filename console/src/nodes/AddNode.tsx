// A new node begins with a name here and a token for the machine. The token is told once and enrols one machine.
import { useState } from "react";
import type { NodeWithToken } from "../api/types";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { AskDialog } from "../ui/Ask";
import { Copy } from "../ui/Copy";

export function AddNode({ onMade }: { onMade: (made: NodeWithToken) => void }) {
  const place = usePlace();
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  return (
    <>
      <button type="button" className="primary" onClick={() => setOpen(true)}>
        Add a node
      </button>
      {open && (
        <AskDialog<NodeWithToken>
          title="Add a node"
          confirm="Get the token"
          path={`${place.path}/nodes`}
          body={{ name: name.trim() }}
          reasoned
          renews={["nodes"]}
          onDone={(made) => {
            setName("");
            onMade(made);
          }}
          onClose={() => setOpen(false)}
        >
          <p>You get a token that enrols one machine. The machine makes its own key; only its public half leaves it.</p>
          <label className="field">
            Name
            <input required maxLength={63} value={name} onChange={(event) => setName(event.target.value)} />
          </label>
        </AskDialog>
      )}
    </>
  );
}

export function Enrolment({ made, onDone }: { made: NodeWithToken; onDone: () => void }) {
  const command = `gpuaas agent --platform ${location.origin} --enroll ${made.enrolment_token}`;
  return (
    <section className="secret" aria-label="Enrolment token">
      <h2>The token of {made.name}, shown this once</h2>
      {made.enrolment_token ? (
        <>
          <p>Run this on the machine before {dayAndTime(made.enrolment_expires_at)}:</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
          <pre tabIndex={0}>{command}</pre>
          <Copy text={command} label="Copy the command" />
        </>
      ) : (
        <p className="tone-bad">It was delivered before. Add the node again to get another.</p>
      )}
      <button type="button" onClick={onDone}>
        I have used it
      </button>
    </section>
  );
}
