// The log of a webhook: every event on its way there, how often it was tried, and what the receiver answered. What was
// given up on can be sent again, one by one or all of it.
import { useDeliveries } from "../api/queries";
import { DELIVERY_STATUSES, type DeliveryStatus, type WebhookDelivery } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime, until } from "../time";
import { Ask } from "../ui/Ask";
import { Copy, curl } from "../ui/Copy";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { Tabs } from "../ui/Tabs";

const ANY_TIME = "1970-01-01T00:00:00Z";

export function Deliveries({ path, status }: { path: string; status: DeliveryStatus | undefined }) {
  const place = usePlace();
  const deliveries = useDeliveries(path, status);
  const now = useNow(1000);
  const manages = may(place, "webhooks.manage");
  const columns: Column<WebhookDelivery>[] = [
    { head: "State", cell: (one) => <StateWord state={one.status} />, title: true },
    { head: "Event", cell: (one) => <Event delivery={one} />, title: true },
    { head: "Answer", cell: (one) => <Answer delivery={one} />, className: "why" },
    { head: "Tries", cell: (one) => one.attempts, className: "number" },
    { head: "Next", cell: (one) => next(one, now), className: "nowrap" },
    {
      head: "Taken up",
      cell: (one) => <time title={dayAndTime(one.created_at)}>{ago(one.created_at, now)}</time>,
      className: "nowrap",
    },
    { head: "Actions", cell: (one) => manages && <Replay path={path} delivery={one} />, className: "buttons" },
  ];
  return (
    <section className="part" aria-label="Deliveries">
      <div className="head">
        <h2>Deliveries</h2>
        <span className="spring" />
        {manages && status === "failed" && <ReplayAll path={path} />}
        <Copy text={curl("GET", `${path}/deliveries`)} label="Copy as curl" />
      </div>
      <Tabs
        label="Which deliveries"
        tabs={[
          { name: "All", search: {} },
          ...DELIVERY_STATUSES.map((one) => ({ name: TABS[one], search: { status: one } })),
        ]}
      />
      <Listed list={deliveries} what="deliveries" empty={<None status={status} />}>
        {(items) => (
          <Table
            label="Deliveries"
            columns={columns}
            rows={items}
            id={(one) => one.id}
            edge={(one) => (one.status === "failed" ? "bad" : one.error ? "hold" : undefined)}
          />
        )}
      </Listed>
    </section>
  );
}

const TABS: Record<DeliveryStatus, string> = { pending: "On their way", delivered: "Delivered", failed: "Given up" };

function None({ status }: { status: DeliveryStatus | undefined }) {
  if (status === "failed")
    return <Empty title="Nothing was given up on">Every event so far arrived or is still tried.</Empty>;
  if (status) return <Empty title="No delivery is in this state" />;
  return <Empty title="Nothing was sent yet">The next event of the project that it wants is the first.</Empty>;
}

function Event({ delivery }: { delivery: WebhookDelivery }) {
  return (
    <>
      <strong>{delivery.event_type}</strong>
      <span className="subject id">{delivery.event_id}</span>
    </>
  );
}

function Answer({ delivery }: { delivery: WebhookDelivery }) {
  const { response_status: status, error } = delivery;
  if (!status && !error) return null;
  return (
    <span className={error ? "tone-bad" : "quiet"}>
      {[status, error].filter((part) => part !== null && part !== undefined).join(" · ")}
    </span>
  );
}

function next({ status, next_attempt_at, delivered_at }: WebhookDelivery, now: number): string | null {
  if (delivered_at) return `arrived ${ago(delivered_at, now)}`;
  return status === "pending" && next_attempt_at ? until(next_attempt_at, now) : null;
}

function Replay({ path, delivery }: { path: string; delivery: WebhookDelivery }) {
  if (delivery.status === "pending") return null;
  return (
    <Ask
      label="Send again"
      title={`Send ${delivery.event_type} again?`}
      confirm="Send again"
      path={`${path}/replay`}
      body={{ delivery_ids: [delivery.id] }}
      reasoned
      renews={["deliveries"]}
    >
      <p>The same event with the same id. A receiver that remembers ids takes it once.</p>
    </Ask>
  );
}

function ReplayAll({ path }: { path: string }) {
  return (
    <Ask
      label="Send all again"
      title="Send everything again that was given up on?"
      confirm="Send again"
      path={`${path}/replay`}
      body={{ failed_since: ANY_TIME }}
      reasoned
      renews={["deliveries"]}
    >
      <p>Every delivery that was given up on is tried anew, from the first try on.</p>
    </Ask>
  );
}
