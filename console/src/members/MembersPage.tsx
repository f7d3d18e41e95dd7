// Who belongs to the project, and as what.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change } from "../api/client";
import { useMembers } from "../api/queries";
import type { Member } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Ask, AskDialog } from "../ui/Ask";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { type Column, Table } from "../ui/Table";

const ROLES = ["viewer", "operator", "publisher", "admin"];

export function MembersPage() {
  const place = usePlace();
  const members = useMembers(place);
  const [adding, setAdding] = useState(false);
  const manages = may(place, "iam.member.manage");
  return (
    <>
      <div className="head">
        <h1>Members</h1>
        <span className="spring" />
        {manages && (
          <button type="button" className="primary" onClick={() => setAdding(true)}>
            Add a member
          </button>
        )}
      </div>
      <p className="lead">Who may do what in this project. A change counts from the next request.</p>
      <Listed
        list={members}
        what="members"
        empty={<Empty title="Nobody belongs here yet">Add somebody who has signed in before.</Empty>}
      >
        {(items) => <Table label="Members" columns={COLUMNS} rows={items} id={(member) => member.id} />}
      </Listed>
      {adding && <Add onClose={() => setAdding(false)} />}
    </>
  );
}

const COLUMNS: Column<Member>[] = [
  { head: "Person", cell: (member) => <strong>{member.username}</strong>, title: true },
  { head: "Role", cell: (member) => <Role member={member} /> },
  { head: "Since", cell: (member) => dayAndTime(member.created_at), className: "nowrap" },
  { head: "Actions", cell: (member) => <Remove member={member} />, className: "buttons" },
];

function Role({ member }: { member: Member }) {
  const place = usePlace();
  const client = useQueryClient();
  const assign = useMutation({
    mutationFn: (role: string) =>
      change<unknown>("PATCH", `${place.path}/members/${member.id}`, { role }, crypto.randomUUID()),
    onSettled: () => client.invalidateQueries({ queryKey: ["members"] }),
  });
  const roles = ROLES.includes(member.role) ? ROLES : [...ROLES, member.role];
  return (
    <>
      <select
        aria-label={`Role of ${member.username}`}
        value={member.role}
        disabled={assign.isPending}
        onChange={(event) => assign.mutate(event.target.value)}
      >
        {roles.map((role) => (
          <option key={role}>{role}</option>
        ))}
      </select>
      {assign.error && <span className="tone-bad"> {assign.error.message}</span>}
    </>
  );
}

function Remove({ member }: { member: Member }) {
  const place = usePlace();
  return (
    <Ask
      label="Remove"
      title={`Remove ${member.username}?`}
      confirm="Remove"
      danger
      method="DELETE"
      path={`${place.path}/members/${member.id}`}
      renews={["members"]}
    >
      <p>They lose what they may do in this project at once. What they started goes on.</p>
    </Ask>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const place = usePlace();
  const [username, setUsername] = useState("");
  const [role, setRole] = useState("viewer");
  return (
    <AskDialog
      title="Add a member"
      confirm="Add"
      path={`${place.path}/members`}
      body={{ username: username.trim(), role }}
      renews={["members"]}
      onClose={onClose}
    >
      <label className="field">
        Name at the issuer <span className="quiet">they must have signed in once</span>
        <input required value={username} onChange={(event) => setUsername(event.target.value)} />
      </label>
      <label className="field">
        Role
        <select value={role} onChange={(event) => setRole(event.target.value)}>
          {ROLES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
    </AskDialog>
  );
}
