// Who belongs to the project, and as what.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change, post } from "../api/client";
import { useMembers } from "../api/queries";
import type { Member } from "../api/types";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Dialog } from "../ui/Dialog";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { More } from "../ui/More";

const ROLES = ["viewer", "operator", "publisher", "admin"];

export function MembersPage() {
  const place = usePlace();
  const members = useMembers(place);
  const [adding, setAdding] = useState(false);
  return (
    <>
      <div className="head">
        <h1>Members</h1>
        <span className="spring" />
        <button type="button" className="primary" onClick={() => setAdding(true)}>
          Add a member
        </button>
      </div>
      {members.error && <Problem error={members.error} again={() => void members.refetch()} />}
      {members.isPending && !members.error && <Loading what="members" />}
      {members.data?.length === 0 && (
        <Empty title="Nobody belongs here yet">Add somebody who has signed in before.</Empty>
      )}
      {members.data && members.data.length > 0 && (
        <div className="scroll">
          <table className="list">
            <thead>
              <tr>
                <th scope="col">Person</th>
                <th scope="col">Role</th>
                <th scope="col">Since</th>
                <th scope="col">
                  <span className="sr">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {members.data.map((member) => (
                <Line key={member.id} member={member} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <More {...members} />
      {adding && <Add onClose={() => setAdding(false)} />}
    </>
  );
}

function Line({ member }: { member: Member }) {
  const place = usePlace();
  const client = useQueryClient();
  const [leaving, setLeaving] = useState(false);
  const path = `${place.path}/members/${member.id}`;
  const renewed = () => client.invalidateQueries({ queryKey: ["members"] });
  const assign = useMutation({
    mutationFn: (role: string) => change<unknown>("PATCH", path, { role }, crypto.randomUUID()),
    onSettled: renewed,
  });
  const remove = useMutation({
    mutationFn: () => change<unknown>("DELETE", path, undefined, crypto.randomUUID()),
    onSuccess: () => setLeaving(false),
    onSettled: renewed,
  });
  const roles = ROLES.includes(member.role) ? ROLES : [...ROLES, member.role];
  return (
    <tr>
      <td>
        <strong>{member.username}</strong>
      </td>
      <td>
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
      </td>
      <td>{dayAndTime(member.created_at)}</td>
      <td className="buttons">
        <button type="button" onClick={() => setLeaving(true)}>
          Remove
        </button>
        {leaving && (
          <Dialog
            title={`Remove ${member.username}?`}
            confirm="Remove"
            danger
            busy={remove.isPending}
            error={remove.error}
            onConfirm={() => remove.mutate()}
            onClose={() => setLeaving(false)}
          >
            <p>They lose what they may do in this project at once. What they started goes on.</p>
          </Dialog>
        )}
      </td>
    </tr>
  );
}

function Add({ onClose }: { onClose: () => void }) {
  const place = usePlace();
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const [username, setUsername] = useState("");
  const [role, setRole] = useState("viewer");
  const add = useMutation({
    mutationFn: () => post<unknown>(`${place.path}/members`, { username: username.trim(), role }, key),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ["members"] });
      onClose();
    },
  });
  return (
    <Dialog
      title="Add a member"
      confirm="Add"
      busy={add.isPending}
      error={add.error}
      onConfirm={() => add.mutate()}
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
    </Dialog>
  );
}
