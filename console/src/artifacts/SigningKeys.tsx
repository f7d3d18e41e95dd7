// The keys whose signatures the project accepts. A key that is retired signs nothing new; what it signed stays good.
import { useState } from "react";
import { useSigningKeys } from "../api/queries";
import type { SigningKey } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Ask, AskDialog } from "../ui/Ask";
import { Copy } from "../ui/Copy";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";

export function SigningKeys() {
  const place = usePlace();
  const keys = useSigningKeys(place);
  const [adding, setAdding] = useState(false);
  return (
    <>
      {may(place, "apps.artifact.revoke") && (
        <div className="head">
          <span className="spring" />
          <button type="button" className="primary" onClick={() => setAdding(true)}>
            Add a key
          </button>
        </div>
      )}
      <Listed
        list={keys}
        what="signing keys"
        empty={
          <Empty title="No signing key">
            Add the public half of a cosign key, and artifacts signed by it pass where policy asks for a signature.
          </Empty>
        }
      >
        {(items) => <Table label="Signing keys" columns={COLUMNS} rows={items} id={(key) => key.id} />}
      </Listed>
      {adding && <Add onClose={() => setAdding(false)} />}
    </>
  );
}

const COLUMNS: Column<SigningKey>[] = [
  { head: "Key", cell: (key) => <strong>{key.name}</strong>, title: true },
  { head: "State", cell: (key) => <StateWord state={key.retired_at ? "retired" : "active"} /> },
  { head: "Algorithm", cell: (key) => key.algorithm, className: "nowrap" },
  { head: "Added", cell: (key) => dayAndTime(key.created_at), className: "nowrap" },
  { head: "Public key", cell: (key) => <Copy text={key.public_key_pem} label="Copy as PEM" /> },
  { head: "Actions", cell: (key) => <Retire signingKey={key} />, className: "buttons" },
];

function Retire({ signingKey }: { signingKey: SigningKey }) {
  const place = usePlace();
  if (signingKey.retired_at || !may(place, "apps.artifact.revoke")) return null;
  return (
    <Ask
      label="Retire"
      title={`Retire ${signingKey.name}?`}
      confirm="Retire"
      danger
      path={`${place.path}/signing-keys/${signingKey.id}/retire`}
      reasoned
      renews={["signing-keys"]}
    >
      <p>Its signatures are accepted for nothing new. This cannot be taken back; add the key again under a new name.</p>
    </Ask>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const place = usePlace();
  const [name, setName] = useState("");
  const [pem, setPem] = useState("");
  return (
    <AskDialog
      title="Add a signing key"
      confirm="Add"
      path={`${place.path}/signing-keys`}
      body={{ name: name.trim(), public_key_pem: pem }}
      renews={["signing-keys"]}
      onClose={onClose}
    >
      <label className="field">
        Name
        <input required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label className="field">
        Public key <span className="quiet">PEM, ECDSA P-256, as cosign writes it</span>
        <textarea
          required
          rows={6}
          value={pem}
          placeholder="-----BEGIN PUBLIC KEY-----"
          onChange={(event) => setPem(event.target.value)}
        />
      </label>
    </AskDialog>
  );
}
