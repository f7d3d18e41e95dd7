// Manifests that app teams sent for review, newest first; for the platform's people each is a decision to make.
import { Link } from "@tanstack/react-router";
import { useSubmissions } from "../api/queries";
import type { Submission } from "../api/types";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { useRowKeys } from "../ui/rows";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";

export function Submissions() {
  const submissions = useSubmissions(usePlace());
  const now = useNow(1000);
  useRowKeys("a.row-link");
  const columns: Column<Submission>[] = [
    { head: "Status", cell: (one) => <StateWord state={one.status} />, title: true },
    { head: "Version", cell: (one) => <Name submission={one} />, title: true },
    { head: "Reason", cell: (one) => one.reason, className: "why" },
    {
      head: "Sent",
      cell: (one) => <time title={dayAndTime(one.created_at)}>{ago(one.created_at, now)}</time>,
      className: "nowrap",
    },
    { head: "Decided", cell: (one) => one.decided_at && dayAndTime(one.decided_at), className: "nowrap" },
  ];
  return (
    <Listed
      list={submissions}
      what="submissions"
      empty={
        <Empty title="Nothing was sent for review">
          An app team sends a manifest by <code>POST …/apps/manifests</code>; it appears here with what it changes.
        </Empty>
      }
    >
      {(items) => <Table label="Submissions" columns={columns} rows={items} id={(one) => one.id} />}
    </Listed>
  );
}

function Name({ submission }: { submission: Submission }) {
  const place = usePlace();
  const name = (
    <>
      <strong>
        {submission.app_slug} {submission.version}
      </strong>{" "}
      <span className="id">{submission.content_digest.slice(7, 19)}</span>
    </>
  );
  if (!place.isPlatform) return name;
  return (
    <Link
      className="row-link"
      to="/$place/submissions/$submission"
      params={{ place: place.id, submission: submission.id }}
    >
      {name}
    </Link>
  );
}
