// One webhook: how it stands, what was sent to it and what was not, and what may be done about that.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { oneOptions, SELDOM } from "../api/queries";
import type { Webhook, WebhookWithSecret } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime, until } from "../time";
import { Ask } from "../ui/Ask";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { Deliveries } from "./Deliveries";
import { NewSecret } from "./NewSecret";
import { WebhookDialog } from "./WebhookDialog";
import { disabledBecause, wanted } from "./words";

export function WebhookPage() {
  const place = usePlace();
  const { webhook: id } = useParams({ from: "/$place/webhooks/$webhook" });
  const { status } = useSearch({ from: "/$place/webhooks/$webhook" });
  const [made, setMade] = useState<WebhookWithSecret | null>(null);
  const path = `${place.path}/webhooks/${id}`;
  const webhook = useQuery(oneOptions<Webhook>("webhook", path, SELDOM));
  if (webhook.error && !webhook.data) return <Problem error={webhook.error} again={() => void webhook.refetch()} />;
  if (!webhook.data) return <Loading what="the webhook" />;
  const shown = webhook.data;
  return (
    <>
      <Crumbs above={[{ name: "Webhooks", link: { to: "/$place/webhooks", params: { place: place.id } } }]} />
      <div className="head">
        <h1 className="address">{shown.url}</h1>
        <StateWord state={shown.status} />
        <span className="spring" />
        {may(place, "webhooks.manage") && <Buttons webhook={shown} path={path} onSecret={setMade} />}
      </div>
      {shown.description && <p className="lead">{shown.description}</p>}
      {made && <NewSecret made={made} onDone={() => setMade(null)} />}
      <WebhookFacts webhook={shown} />
      <Trouble webhook={shown} />
      <Deliveries path={path} status={status} />
    </>
  );
}

function WebhookFacts({ webhook }: { webhook: Webhook }) {
  const now = useNow(1000);
  return (
    <Facts
      facts={[
        [
          "Events",
          <span key="types" title={webhook.event_types.join("\n")}>
            {wanted(webhook)}
          </span>,
        ],
        ["Made", dayAndTime(webhook.created_at)],
        ["Changed", webhook.updated_at === webhook.created_at ? null : dayAndTime(webhook.updated_at)],
        ["The secret before ends", webhook.previous_secret_until && until(webhook.previous_secret_until, now)],
      ]}
    />
  );
}

function Trouble({ webhook }: { webhook: Webhook }) {
  const now = useNow(1000);
  if (webhook.status === "disabled" && webhook.disabled_reason) {
    return (
      <section className="cause blocked" aria-label="Why nothing is sent">
        <h2>Nothing is sent: {disabledBecause(webhook.disabled_reason)}</h2>
        <p>Enable it again and it goes on where it stopped.</p>
      </section>
    );
  }
  if (!webhook.failing_since) return null;
  return (
    <section className="cause blocked" aria-label="Why nothing arrives">
      <h2>The receiver takes nothing; the first failure was {ago(webhook.failing_since, now)}</h2>
      <p>The deliveries below say what it answered. Each is tried again by itself for more than a day.</p>
    </section>
  );
}

interface Doing {
  webhook: Webhook;
  path: string;
  onSecret: (made: WebhookWithSecret) => void;
}

function Buttons({ webhook, path, onSecret }: Doing) {
  const place = usePlace();
  const navigate = useNavigate();
  const [changing, setChanging] = useState(false);
  const active = webhook.status === "active";
  return (
    <fieldset className="actions" aria-label="Actions">
      <button type="button" onClick={() => setChanging(true)}>
        Change
      </button>
      <Ask<WebhookWithSecret>
        label="Rotate secret"
        title="Make a new secret?"
        confirm="Rotate secret"
        path={`${path}/rotate-secret`}
        reasoned
        renews={["webhook"]}
        onDone={onSecret}
      >
        <p>The old secret signs too for a day, so that the receiver can change over without missing anything.</p>
      </Ask>
      <Ask
        label={active ? "Disable" : "Enable"}
        title={active ? "Send nothing there for now?" : "Send events there again?"}
        confirm={active ? "Disable" : "Enable"}
        method="PATCH"
        path={path}
        body={{ status: active ? "disabled" : "active" }}
        reasoned
        renews={["webhook", "webhooks"]}
      >
        <p>
          {active
            ? "Events are kept for it meanwhile; once it is enabled again it goes on where it stopped."
            : "It goes on where it stopped, so everything that was told meanwhile is sent now."}
        </p>
      </Ask>
      <Ask
        label="Delete"
        title="Delete this webhook?"
        confirm="Delete"
        danger
        method="DELETE"
        path={path}
        renews={["webhooks"]}
        onDone={() => void navigate({ to: "/$place/webhooks", params: { place: place.id } })}
      >
        <p>Nothing is sent there any more, and the log of its deliveries is forgotten.</p>
      </Ask>
      {changing && <WebhookDialog webhook={webhook} onClose={() => setChanging(false)} />}
    </fieldset>
  );
}
