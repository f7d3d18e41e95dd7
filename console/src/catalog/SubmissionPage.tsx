// One submission: what it changes against the version before, and the decision.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { oneOptions, SELDOM } from "../api/queries";
import type { SubmissionDetail } from "../api/types";
import { may } from "../place";
import { Json } from "../run/Json";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Ask } from "../ui/Ask";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";

export function SubmissionPage() {
  const place = usePlace();
  const { submission: id } = useParams({ from: "/$place/submissions/$submission" });
  const path = `${place.path}/apps/submissions/${id}`;
  const submission = useQuery(oneOptions<SubmissionDetail>("submission", path, SELDOM));
  if (submission.error && !submission.data) return <Problem error={submission.error} />;
  if (!submission.data) return <Loading what="the submission" />;
  const shown = submission.data;
  const reviews = { to: "/$place/catalog", params: { place: place.id }, search: { view: "reviews" } } as const;
  return (
    <>
      <Crumbs above={[{ name: "Reviews", link: reviews }]} />
      <div className="head">
        <h1>
          {shown.app_slug} {shown.version}
        </h1>
        <StateWord state={shown.status} />
        <span className="spring" />
        {shown.status === "pending" && <Decision path={path} what={`${shown.app_slug} ${shown.version}`} />}
      </div>
      <Facts
        facts={[
          ["Sent", dayAndTime(shown.created_at)],
          ["Compared with", shown.previous_version ?? "nothing: it is the app's first"],
          ["Decided", shown.decided_at && dayAndTime(shown.decided_at)],
          ["Reason", shown.reason],
          ["Content", <code key="digest">{shown.content_digest.slice(0, 19)}…</code>],
        ]}
      />
      <section className="part" aria-label="What it changes">
        <h2>What it changes</h2>
        {shown.diff.length === 0 ? (
          <p className="quiet">Nothing{shown.previous_version ? ` against ${shown.previous_version}` : " yet"}.</p>
        ) : (
          <Table label="What it changes" columns={CHANGES} rows={shown.diff} id={(one) => one.pointer} />
        )}
      </section>
      <section className="part" aria-label="Manifest">
        <Json title="Manifest" value={shown.manifest} />
      </section>
    </>
  );
}

const value = (one: unknown) => (one === undefined ? null : <code>{JSON.stringify(one)}</code>);
const TONES = { added: "tone-good", removed: "tone-bad", changed: "tone-hold" };

const CHANGES: Column<SubmissionDetail["diff"][number]>[] = [
  { head: "Field", cell: (one) => <code>{one.pointer}</code>, title: true },
  { head: "Change", cell: (one) => <span className={TONES[one.kind]}>{one.kind}</span> },
  { head: "Before", cell: (one) => value(one.before), className: "why" },
  { head: "After", cell: (one) => value(one.after), className: "why" },
];

function Decision({ path, what }: { path: string; what: string }) {
  const place = usePlace();
  if (!may(place, "apps.version.manage")) return null;
  const renews = ["submission", "submissions", "apps", "versions"];
  return (
    <fieldset className="actions" aria-label="Decision">
      <Ask
        label="Reject"
        title={`Reject ${what}?`}
        confirm="Reject"
        danger
        path={`${path}/reject`}
        reasoned
        renews={renews}
      >
        <p>It goes back to its team with your reason, which they need to do better.</p>
      </Ask>
      <Ask
        label="Approve"
        primary
        title={`Approve ${what}?`}
        confirm="Approve"
        path={`${path}/approve`}
        reasoned
        renews={renews}
      >
        <p>The version enters the catalog as a draft. Nobody can deploy it before it is staged and rolled out.</p>
      </Ask>
    </fieldset>
  );
}
