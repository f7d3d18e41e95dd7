// The machines of a project. A private key is shown once, here, and never again anywhere.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change, post } from "../api/client";
import { useServiceAccounts } from "../api/queries";
import type { ServiceAccount, ServiceAccountWithKey } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { More } from "../ui/More";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";

export function AccountsPage() {
  const place = usePlace();
  const accounts = useServiceAccounts(place);
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<ServiceAccountWithKey | null>(null);
  const manages = may(place, "iam.service_account.manage");
  const shown = accounts.data?.filter((account) => account.status !== "deleted");
  return (
    <>
      <div className="head">
        <h1>Service accounts</h1>
        <span className="spring" />
        {manages && (
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            New service account
          </button>
        )}
      </div>
      {made && <NewKey made={made} onDone={() => setMade(null)} />}
      {accounts.error && <Problem error={accounts.error} again={() => void accounts.refetch()} />}
      {accounts.isPending && !accounts.error && <Loading what="service accounts" />}
      {shown?.length === 0 && (
        <Empty title="No machine works here yet">
          {manages
            ? "Make one for your CI or your own program; it signs in by a key."
            : "Somebody who manages them can make one."}
        </Empty>
      )}
      {shown && shown.length > 0 && <Table accounts={shown} manages={manages} onKey={setMade} />}
      <More {...accounts} />
      {creating && <Create onClose={() => setCreating(false)} onMade={setMade} />}
    </>
  );
}

function Table({
  accounts,
  manages,
  onKey,
}: {
  accounts: ServiceAccount[];
  manages: boolean;
  onKey: (made: ServiceAccountWithKey) => void;
}) {
  const now = useNow(1000);
  return (
    <div className="scroll">
      <table className="list">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Account</th>
            <th scope="col">May</th>
            <th scope="col">Keys</th>
            <th scope="col">Last used</th>
            <th scope="col">
              <span className="sr">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {accounts.map((account) => (
            <tr key={account.id}>
              <td>
                <StateWord state={account.status} />
              </td>
              <td>
                <strong>{account.slug}</strong>
                <span className="subject">{account.description ?? account.name}</span>
              </td>
              <td title={account.permissions.join("\n")}>{account.permissions.length} permissions</td>
              <td className="id">{account.keys.map((key) => key.key_id.slice(-8)).join(", ") || "none"}</td>
              <td>{account.last_used_at ? ago(account.last_used_at, now) : "never"}</td>
              <td className="buttons">{manages && <Buttons account={account} onKey={onKey} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Buttons({ account, onKey }: { account: ServiceAccount; onKey: (made: ServiceAccountWithKey) => void }) {
  const place = usePlace();
  const client = useQueryClient();
  const path = `${place.path}/service-accounts/${account.id}`;
  const [rotating, setRotating] = useState(false);
  const [key] = useState(() => crypto.randomUUID());
  const renewed = () => client.invalidateQueries({ queryKey: ["service-accounts"] });
  const turn = account.status === "active" ? "disable" : "enable";
  const toggle = useMutation({
    mutationFn: () => change<unknown>("POST", `${path}/${turn}`, {}, crypto.randomUUID()),
    onSettled: renewed,
  });
  const rotate = useMutation({
    mutationFn: () => post<ServiceAccountWithKey>(`${path}/rotate-key`, {}, key),
    onSuccess: (made) => {
      setRotating(false);
      onKey(made);
    },
    onSettled: renewed,
  });
  return (
    <>
      {toggle.error && <span className="tone-bad">{toggle.error.message}</span>}
      <button type="button" onClick={() => setRotating(true)}>
        Rotate key
      </button>
      <button type="button" disabled={toggle.isPending} onClick={() => toggle.mutate()}>
        {turn === "disable" ? "Disable" : "Enable"}
      </button>
      {rotating && (
        <Dialog
          title={`A new key for ${account.slug}?`}
          confirm="Make the key"
          busy={rotate.isPending}
          error={rotate.error}
          curl={<Copy text={curl("POST", `${path}/rotate-key`, {})} label="Copy as curl" />}
          onConfirm={() => rotate.mutate()}
          onClose={() => setRotating(false)}
        >
          <p>
            The newest of the present keys keeps working, so that its holder can change over; older ones end at once.
          </p>
        </Dialog>
      )}
    </>
  );
}

function Create({ onClose, onMade }: { onClose: () => void; onMade: (made: ServiceAccountWithKey) => void }) {
  const place = usePlace();
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const path = `${place.path}/service-accounts`;
  const body = { name: name.trim(), ...(description.trim() ? { description: description.trim() } : {}) };
  const create = useMutation({
    mutationFn: () => post<ServiceAccountWithKey>(path, body, key),
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: ["service-accounts"] });
      onMade(made);
      onClose();
    },
  });
  return (
    <Dialog
      title="New service account"
      confirm="Create"
      busy={create.isPending}
      error={create.error}
      curl={<Copy text={curl("POST", path, body)} label="Copy as curl" />}
      onConfirm={() => create.mutate()}
      onClose={onClose}
    >
      <label className="field">
        Name
        <input required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label className="field">
        What it is for <span className="quiet">optional</span>
        <input maxLength={1000} value={description} onChange={(event) => setDescription(event.target.value)} />
      </label>
      <p className="quiet">It may read and drive instances, publish artifacts and read workflows.</p>
    </Dialog>
  );
}

function NewKey({ made, onDone }: { made: ServiceAccountWithKey; onDone: () => void }) {
  return (
    <section className="new-key" aria-label="The new key">
      <h2>The key of {made.slug}, shown this once</h2>
      <p>
        Keep it where your program finds it. Nobody can show it again, the platform keeps only its public half. Key id{" "}
        <code>{made.key_id}</code>, account <code>{made.id}</code>.
      </p>
      {made.private_key_pem ? (
        <>
          <pre>{made.private_key_pem}</pre>
          <Copy text={made.private_key_pem} label="Copy the private key" />
        </>
      ) : (
        <p className="tone-bad">It was delivered before. Rotate the key to get another.</p>
      )}
      <button type="button" onClick={onDone}>
        I have kept it
      </button>
    </section>
  );
}
