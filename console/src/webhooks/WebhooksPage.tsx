// Where the project's events are sent. A secret is shown once, when it is made.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useWebhooks } from "../api/queries";
import type { Webhook, WebhookWithSecret } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { useRowKeys } from "../ui/rows";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { NewSecret } from "./NewSecret";
import { WebhookDialog } from "./WebhookDialog";
import { disabledBecause, wanted } from "./words";

export function WebhooksPage() {
  const place = usePlace();
  const webhooks = useWebhooks(place);
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<WebhookWithSecret | null>(null);
  const manages = may(place, "webhooks.manage");
  const now = useNow(1000);
  useRowKeys("a.row-link");
  const columns: Column<Webhook>[] = [
    { head: "State", cell: (webhook) => <StateWord state={webhook.status} />, title: true },
    { head: "Webhook", cell: (webhook) => <Name webhook={webhook} />, title: true },
    { head: "Events", cell: wanted },
    { head: "Note", cell: (webhook) => <Note webhook={webhook} now={now} />, className: "why" },
    {
      head: "Since",
      cell: (webhook) => <time title={dayAndTime(webhook.created_at)}>{ago(webhook.created_at, now)}</time>,
      className: "nowrap",
    },
  ];
  return (
    <>
      <div className="head">
        <h1>Webhooks</h1>
        <span className="spring" />
        {manages && (
          <button type="button" className="primary" onClick={() => setCreating(true)}>
            New webhook
          </button>
        )}
      </div>
      <p className="lead">
        Addresses that get the project's events as they happen, signed by the rules of Standard Webhooks and tried again
        for a day and more.
      </p>
      {made && <NewSecret made={made} onDone={() => setMade(null)} />}
      <Listed list={webhooks} what="webhooks" empty={<NoWebhooks manages={manages} />}>
        {(items) => (
          <Table
            label="Webhooks"
            columns={columns}
            rows={items}
            id={(webhook) => webhook.id}
            edge={(webhook) => (webhook.failing_since ? "bad" : webhook.status === "disabled" ? "hold" : undefined)}
          />
        )}
      </Listed>
      {creating && <WebhookDialog onClose={() => setCreating(false)} onMade={setMade} />}
    </>
  );
}

function NoWebhooks({ manages }: { manages: boolean }) {
  return (
    <Empty title="Nothing is sent anywhere yet">
      {manages
        ? "Name an address of yours that takes events, and keep the secret that it checks them by."
        : "A project admin can add a webhook. The events themselves are on the page Events."}
    </Empty>
  );
}

function Name({ webhook }: { webhook: Webhook }) {
  const place = usePlace();
  return (
    <>
      <Link className="row-link" to="/$place/webhooks/$webhook" params={{ place: place.id, webhook: webhook.id }}>
        <strong className="address">{webhook.url}</strong>
      </Link>
      {webhook.description && <span className="subject">{webhook.description}</span>}
    </>
  );
}

function Note({ webhook, now }: { webhook: Webhook; now: number }) {
  if (webhook.failing_since)
    return <span className="tone-bad">takes nothing; first failure {ago(webhook.failing_since, now)}</span>;
  return webhook.disabled_reason ? disabledBecause(webhook.disabled_reason) : null;
}
