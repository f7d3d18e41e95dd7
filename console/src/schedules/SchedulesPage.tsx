// What starts by itself: when next, how it went last, and a hand on the switch.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { change } from "../api/client";
import { useSchedules } from "../api/queries";
import type { Schedule } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime, until } from "../time";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { More } from "../ui/More";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";

export function SchedulesPage() {
  const place = usePlace();
  const schedules = useSchedules(place);
  const now = useNow(1000);
  return (
    <>
      <div className="head">
        <h1>Schedules</h1>
      </div>
      {schedules.error && <Problem error={schedules.error} again={() => void schedules.refetch()} />}
      {schedules.isPending && !schedules.error && <Loading what="schedules" />}
      {schedules.data?.length === 0 && (
        <Empty title="Nothing runs by the clock">
          Workers declare their schedules when they start: is one running?
        </Empty>
      )}
      {schedules.data && schedules.data.length > 0 && (
        <div className="scroll">
          <table className="list">
            <thead>
              <tr>
                <th scope="col">Schedule</th>
                <th scope="col">Cron, UTC</th>
                <th scope="col">Next</th>
                <th scope="col">Last</th>
                <th scope="col">Result</th>
                <th scope="col">
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {schedules.data.map((schedule) => (
                <Line key={schedule.name} schedule={schedule} now={now} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <More {...schedules} />
    </>
  );
}

function Line({ schedule, now }: { schedule: Schedule; now: number }) {
  const place = usePlace();
  return (
    <tr>
      <td>
        <strong>{schedule.name}</strong> <span className="id">{schedule.kind}</span>
        <span className="subject">
          missed ticks: {schedule.missed}; overlap: {schedule.overlap}
        </span>
      </td>
      <td className="id">{schedule.cron}</td>
      <td>
        {schedule.paused ? (
          <StateWord state="paused" />
        ) : (
          <span title={dayAndTime(schedule.next_at)}>{until(schedule.next_at, now)}</span>
        )}
      </td>
      <td>
        {schedule.last_at ? <span title={dayAndTime(schedule.last_at)}>{ago(schedule.last_at, now)}</span> : "never"}
      </td>
      <td>
        {schedule.last_run_id && schedule.last_run_status && (
          <Link to="/$place/runs/$run" params={{ place: place.id, run: schedule.last_run_id }}>
            <StateWord state={schedule.last_run_status} />
          </Link>
        )}
      </td>
      <td className="buttons">{may(place, "workflows.operate") && <Buttons schedule={schedule} />}</td>
    </tr>
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
