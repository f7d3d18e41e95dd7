// What an instance writes, as it writes it. The node is asked there and then and nothing is kept, so what is shown here is
// gone with the page.
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { ApiError, address, ROOT } from "../api/client";
import { oneOptions, SELDOM } from "../api/queries";
import type { Instance, InstanceMember, LogLine, Page } from "../api/types";
import { clock } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { FollowingWord } from "../ui/Following";
import { useStream } from "../ui/stream";

const TAIL = 500;
const MOST = 5000;
const MAIN = "main";

/** No node has anything of what was not launched yet, or is gone. */
const SILENT: Instance["status"][] = ["requested", "decommissioned"];

export function Logs({ instance, path }: { instance: Instance; path: string }) {
  return SILENT.includes(instance.status) ? (
    <Nothing instance={instance} />
  ) : (
    <Followed instance={instance} path={path} />
  );
}

function Nothing({ instance }: { instance: Instance }) {
  return (
    <Empty title="There is nothing to read">
      The instance is {instance.status}: no node holds anything it wrote. Logs are there from its launch until it is
      decommissioned.
    </Empty>
  );
}

function Followed({ instance, path }: { instance: Instance; path: string }) {
  const { member = MAIN } = useSearch({ from: "/$place/instances/$instance" });
  const [following, follow] = useState(true);
  const [wanted, setWanted] = useState("");
  const query = { follow: "true", tail: TAIL, member: member === MAIN ? undefined : member };
  const stream = address(`${path}/logs`, query).slice(ROOT.length);
  const { items, state, error } = useStream<LogLine>({
    path: following ? stream : null,
    event: "line",
    most: MOST,
    resumes: false,
  });
  const shown = wanted ? items.filter((line) => line.text.toLowerCase().includes(wanted.toLowerCase())) : items;
  const nothingYet = error instanceof ApiError && error.code === "state_conflict";
  return (
    <section className="logs" aria-label="Logs">
      <div className="stage-head">
        <Members path={path} member={member} />
        <label className="filter">
          <span className="sr">Only lines with</span>
          <input
            type="search"
            value={wanted}
            placeholder="Only lines with…"
            onChange={(event) => setWanted(event.target.value)}
          />
        </label>
        <FollowingWord state={state} />
        <span className="spring" />
        <button type="button" aria-pressed={following} onClick={() => follow(!following)}>
          {following ? "Pause" : "Follow"}
        </button>
        <Copy
          text={`gpuaas logs ${instance.id} -f${member === MAIN ? "" : ` --member ${member}`}`}
          label="Copy as CLI"
        />
        <Copy text={curl("GET", stream.replace("follow=true&", ""))} label="Copy as curl" />
      </div>
      {nothingYet && <Nothing instance={instance} />}
      {error && !nothingYet ? <Problem error={error} /> : null}
      {!error && state === "connecting" && items.length === 0 && <Loading what="what it wrote" />}
      {!error && state !== "connecting" && shown.length === 0 && (
        <Empty title={items.length > 0 ? "No line holds these words" : "It has written nothing yet"}>
          {items.length > 0 ? "Take some away." : "Its lines appear here as it writes them."}
        </Empty>
      )}
      {shown.length > 0 && <Lines lines={shown} />}
    </section>
  );
}

/** Stays at the end while nobody looks back. */
function Lines({ lines }: { lines: LogLine[] }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new line is what moves the end
  useEffect(() => {
    if (box.current && atEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current ?? { scrollTop: 0, scrollHeight: 0, clientHeight: 0 };
    atEnd.current = scrollHeight - scrollTop - clientHeight < 24;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys
    <div className="lines" ref={box} onScroll={scrolled} role="log" aria-label="Lines" tabIndex={0}>
      {lines.map((line, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no name, and only come at the end
        <p key={at} className={line.stream}>
          <time dateTime={line.at}>{writtenAt(line.at)}</time>
          {line.stream === "stderr" && <span className="sr">stderr: </span>}
          <span>{line.text}</span>
        </p>
      ))}
    </div>
  );
}

/** A node that only pretends tells no time. */
const writtenAt = (at: string) => (Date.parse(at) > 0 ? clock(at) : "–");

function Members({ path, member }: { path: string; member: string }) {
  const navigate = useNavigate({ from: "/$place/instances/$instance" });
  const members = useQuery(oneOptions<Page<InstanceMember>>("members", `${path}/members`, SELDOM)).data?.items ?? [];
  const names = [...new Set([member, ...members.map((one) => one.component_key)])];
  if (names.length < 2) return null;
  return (
    <label className="filter">
      <span className="sr">Member</span>
      <select
        value={member}
        onChange={(event) => void navigate({ search: (before) => ({ ...before, member: event.target.value }) })}
      >
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
