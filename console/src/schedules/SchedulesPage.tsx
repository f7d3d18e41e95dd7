// What starts by itself: when next, how it went last, and a hand on the switch.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { change } from "../api/client";
import { useSchedules } from "../api/queries";
import type { Schedule } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime, until } from "../time";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";

export function SchedulesPage() {
  const schedules = useSchedules(usePlace());
  const now = useNow(1000);
  const columns: Column<Schedule>[] = [
    { head: "Schedule", cell: (schedule) => <Name schedule={schedule} />, title: true },
    { head: "Cron, UTC", cell: (schedule) => schedule.cron, className: "id nowrap" },
    { head: "Next", cell: (schedule) => <Next schedule={schedule} now={now} />, className: "nowrap" },
    { head: "Last", cell: (schedule) => <Last schedule={schedule} now={now} />, className: "nowrap" },
    { head: "Result", cell: (schedule) => <Result schedule={schedule} /> },
    { head: "Actions", cell: (schedule) => <Buttons schedule={schedule} />, className: "buttons" },
  ];
  return (
    <>
      <div className="head">
        <h1>Schedules</h1>
      </div>
      <p className="lead">The platform's own upkeep, by the clock. Each tick starts a run.</p>
      <Listed
        list={schedules}
        what="schedules"
        empty={
          <Empty title="Nothing runs by the clock">
            Workers declare their schedules when they start: is one running?
          </Empty>
        }
      >
        {(items) => <Table label="Schedules" columns={columns} rows={items} id={(schedule) => schedule.name} />}
      </Listed>
    </>
  );
}

const MISSED: Record<Schedule["missed"], string> = {
  skip: "missed ticks are skipped",
  one: "missed ticks are made up for once",
  all: "every missed tick is made up for",
};

function Name({ schedule }: { schedule: Schedule }) {
  return (
    <>
      <strong>{schedule.name}</strong> <span className="id">{schedule.kind}</span>
      <span className="subject">
        {MISSED[schedule.missed]}; on overlap: {schedule.overlap}
      </span>
    </>
  );
}

function Next({ schedule, now }: { schedule: Schedule; now: number }) {
  if (schedule.paused) return <StateWord state="paused" />;
  return <time title={dayAndTime(schedule.next_at)}>{until(schedule.next_at, now)}</time>;
}

function Last({ schedule, now }: { schedule: Schedule; now: number }) {
  if (!schedule.last_at) return "never";
  return <time title={dayAndTime(schedule.last_at)}>{ago(schedule.last_at, now)}</time>;
}

function Result({ schedule }: { schedule: Schedule }) {
  const place = usePlace();
  if (!schedule.last_run_id || !schedule.last_run_status) return null;
  return (
    <Link to="/$place/runs/$run" params={{ place: place.id, run: schedule.last_run_id }}>
      <StateWord state={schedule.last_run_status} />
    </Link>
  );
}

function Buttons({ schedule }: { schedule: Schedule }) {
  const place = usePlace();
  const client = useQueryClient();
  const ask = useMutation({
    mutationFn: (verb: "run" | "pause" | "resume") =>
      change<unknown>(
        "POST",
        `${place.path}/schedules/${encodeURIComponent(schedule.name)}/${verb}`,
        {},
        crypto.randomUUID(),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ["schedules"] }),
  });
  const turn = schedule.paused ? "resume" : "pause";
  if (!may(place, "workflows.operate")) return null;
  return (
    <>
      {ask.error && <span className="tone-bad">{ask.error.message}</span>}
      <button type="button" disabled={ask.isPending} onClick={() => ask.mutate("run")}>
        Run now
      </button>
      <button type="button" disabled={ask.isPending} onClick={() => ask.mutate(turn)}>
        {turn === "pause" ? "Pause" : "Resume"}
      </button>
    </>
  );
}
