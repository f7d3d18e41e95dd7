// The machines of a project. A private key is shown once, here, and never again anywhere.
import { useState } from "react";
import { useServiceAccounts } from "../api/queries";
import type { ServiceAccount, ServiceAccountWithKey } from "../api/types";
import { may } from "../place";
import { counted } from "../runtime";
import { usePlace } from "../shell/Shell";
import { ago } from "../time";
import { Ask } from "../ui/Ask";
import { Copy } from "../ui/Copy";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { NewAccount } from "./NewAccount";

export function AccountsPage() {
  const place = usePlace();
  const accounts = useServiceAccounts(place);
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<ServiceAccountWithKey | null>(null);
  const manages = may(place, "iam.service_account.manage");
  const shown = accounts.data?.filter((account) => account.status !== "deleted");
  const now = useNow(1000);
  const columns: Column<ServiceAccount>[] = [
    { head: "Account", cell: (account) => <Account account={account} />, title: true },
    { head: "State", cell: (account) => <StateWord state={account.status} /> },
    {
      head: "May",
      cell: (account) => <May permissions={account.permissions} />,
      className: "nowrap",
    },
    {
      head: "Keys",
      cell: (account) => account.keys.map((key) => key.key_id.slice(-8)).join(", ") || "none",
      className: "id",
    },
    {
      head: "Last used",
      cell: (account) => (account.last_used_at ? ago(account.last_used_at, now) : "never"),
      className: "nowrap",
    },
    {
      head: "Actions",
      cell: (account) => manages && <Buttons account={account} onKey={setMade} />,
      className: "buttons",
    },
  ];
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
      <p className="lead">
        Identities for programs. A private key is shown once, when it is made, and never kept here.
      </p>
      {made && <NewKey made={made} onDone={() => setMade(null)} />}
      <Listed list={{ ...accounts, data: shown }} what="service accounts" empty={<NoAccounts manages={manages} />}>
        {(items) => <Table label="Service accounts" columns={columns} rows={items} id={(account) => account.id} />}
      </Listed>
      {creating && <NewAccount onClose={() => setCreating(false)} onMade={setMade} />}
    </>
  );
}

/** Opened, it says which. */
function May({ permissions }: { permissions: readonly string[] }) {
  return (
    <details className="may">
      <summary>{counted(permissions.length, "permission")}</summary>
      <ul>
        {permissions.map((one) => (
          <li key={one} className="id">
            {one}
          </li>
        ))}
      </ul>
    </details>
  );
}

function NoAccounts({ manages }: { manages: boolean }) {
  return (
    <Empty title="No service accounts yet">
      {manages ? "Make one for your CI or your own program; it signs in by a key." : "A project admin can make one."}
    </Empty>
  );
}

function Account({ account }: { account: ServiceAccount }) {
  return (
    <>
      <strong>{account.slug}</strong>
      <span className="subject">{account.description ?? account.name}</span>
    </>
  );
}

interface ForKey {
  account: ServiceAccount;
  onKey: (made: ServiceAccountWithKey) => void;
}

function Buttons({ account, onKey }: ForKey) {
  const place = usePlace();
  const path = `${place.path}/service-accounts/${account.id}`;
  const active = account.status === "active";
  return (
    <>
      <Ask<ServiceAccountWithKey>
        label="Rotate key"
        title={`Make a new key for ${account.slug}?`}
        confirm="Make the key"
        path={`${path}/rotate-key`}
        reasoned
        renews={["service-accounts"]}
        onDone={onKey}
      >
        <p>The newest of the present keys keeps working, so that its holder can change over; older ones end at once.</p>
      </Ask>
      <Ask
        label={active ? "Disable" : "Enable"}
        title={`${active ? "Disable" : "Enable"} ${account.slug}?`}
        confirm={active ? "Disable" : "Enable"}
        danger={active}
        path={`${path}/${active ? "disable" : "enable"}`}
        renews={["service-accounts"]}
      >
        <p>
          {active
            ? "Its keys and tokens are refused from this moment, until somebody enables it again."
            : "Its keys are accepted again from this moment."}
        </p>
      </Ask>
      <Ask
        label="Delete"
        title={`Delete ${account.slug}?`}
        confirm="Delete"
        danger
        method="DELETE"
        path={path}
        renews={["service-accounts"]}
      >
        <p>Its keys and tokens are refused from this moment and for good. What it did stays in the log.</p>
      </Ask>
    </>
  );
}

function NewKey({ made, onDone }: { made: ServiceAccountWithKey; onDone: () => void }) {
  return (
    <section className="secret" aria-label="The new key">
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
