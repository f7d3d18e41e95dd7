// A new identity for a program: what it is called, and what it may do, at most what its maker may.
import { useState } from "react";
import type { ProjectPermission, ServiceAccountWithKey } from "../api/types";
import { usePlace } from "../shell/Shell";
import { AskDialog } from "../ui/Ask";
import { isUsual, offered } from "./permissions";

interface Props {
  onClose: () => void;
  onMade: (made: ServiceAccountWithKey) => void;
}

export function NewAccount({ onClose, onMade }: Props) {
  const place = usePlace();
  const mine = offered(place.permissions);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [permissions, setPermissions] = useState<ProjectPermission[]>(() => mine.filter(isUsual));
  const told = description.trim() ? { description: description.trim() } : {};
  return (
    <AskDialog<ServiceAccountWithKey>
      title="New service account"
      confirm="Create"
      path={`${place.path}/service-accounts`}
      body={{ name: name.trim(), ...told, permissions }}
      renews={["service-accounts"]}
      onDone={onMade}
      onClose={onClose}
    >
      <label className="field">
        Name
        <input required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label className="field">
        What it is for <span className="quiet">optional</span>
        <input maxLength={1000} value={description} onChange={(event) => setDescription(event.target.value)} />
      </label>
      <Permissions mine={mine} chosen={permissions} onChange={setPermissions} />
    </AskDialog>
  );
}

interface Choosing {
  mine: ProjectPermission[];
  chosen: ProjectPermission[];
  onChange: (permissions: ProjectPermission[]) => void;
}

function Permissions({ mine, chosen, onChange }: Choosing) {
  const families = [...new Set(mine.map(familyOf))];
  const turn = (key: ProjectPermission) =>
    onChange(
      chosen.includes(key)
        ? chosen.filter((one) => one !== key)
        : mine.filter((one) => one === key || chosen.includes(one)),
    );
  return (
    <fieldset className="types">
      <legend>
        What it may do{" "}
        <span className="quiet">
          {chosen.length} of {mine.length} that you may
        </span>
      </legend>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <div className="types-list" tabIndex={0}>
        {families.map((family) => (
          <section key={family}>
            <h3>{family}</h3>
            {mine
              .filter((key) => familyOf(key) === family)
              .map((key) => (
                <label key={key} className="check">
                  <input type="checkbox" checked={chosen.includes(key)} onChange={() => turn(key)} />
                  {key.slice(family.length + 1)}
                </label>
              ))}
          </section>
        ))}
      </div>
    </fieldset>
  );
}

function familyOf(key: string): string {
  return key.slice(0, key.lastIndexOf("."));
}
