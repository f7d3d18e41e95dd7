// A new webhook, or another address, purpose or choice of events for one that is there.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { change } from "../api/client";
import { EVENT_TYPES, type EventType, type Webhook, type WebhookWithSecret } from "../api/types";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";

interface Props {
  /** The one to change; none makes a new one. */
  webhook?: Webhook;
  onClose: () => void;
  onMade?: (made: WebhookWithSecret) => void;
}

export function WebhookDialog({ webhook, onClose, onMade }: Props) {
  const place = usePlace();
  const client = useQueryClient();
  const [key] = useState(() => crypto.randomUUID());
  const [url, setUrl] = useState(webhook?.url ?? "");
  const [description, setDescription] = useState(webhook?.description ?? "");
  const [types, setTypes] = useState<EventType[]>(webhook?.event_types ?? []);
  const method = webhook ? "PATCH" : "POST";
  const path = `${place.path}/webhooks${webhook ? `/${webhook.id}` : ""}`;
  const body = { url: url.trim(), description: description.trim() || null, event_types: types };
  const save = useMutation({
    mutationFn: () => change<WebhookWithSecret>(method, path, body, key),
    onSuccess: (made) => {
      for (const name of ["webhooks", "webhook"]) void client.invalidateQueries({ queryKey: [name] });
      onMade?.(made);
      onClose();
    },
  });
  return (
    <Dialog
      title={webhook ? "Change the webhook" : "New webhook"}
      confirm={webhook ? "Change" : "Create"}
      busy={save.isPending}
      error={save.error}
      curl={<Copy text={curl(method, path, body)} label="Copy as curl" />}
      onConfirm={() => save.mutate()}
      onClose={onClose}
    >
      <label className="field">
        Address <span className="quiet">https, reachable from the platform</span>
        <input
          required
          type="url"
          maxLength={2000}
          value={url}
          placeholder="https://example.com/gpuaas"
          onChange={(event) => setUrl(event.target.value)}
        />
      </label>
      <label className="field">
        What it is for <span className="quiet">optional</span>
        <input maxLength={1000} value={description} onChange={(event) => setDescription(event.target.value)} />
      </label>
      <Types chosen={types} onChange={setTypes} />
    </Dialog>
  );
}

const FAMILIES = [...new Set(EVENT_TYPES.map(familyOf))];

function familyOf(type: EventType): string {
  return type.slice(0, type.lastIndexOf("."));
}

function Types({ chosen, onChange }: { chosen: EventType[]; onChange: (types: EventType[]) => void }) {
  const turn = (type: EventType) =>
    onChange(chosen.includes(type) ? chosen.filter((one) => one !== type) : [...chosen, type]);
  return (
    <fieldset className="types">
      <legend>
        Events{" "}
        <span className="quiet">{chosen.length === 0 ? "none chosen: every type" : `${chosen.length} chosen`}</span>
      </legend>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <div className="types-list" tabIndex={0}>
        {FAMILIES.map((family) => (
          <section key={family}>
            <h3>{family}</h3>
            {EVENT_TYPES.filter((type) => familyOf(type) === family).map((type) => (
              <label key={type} className="check">
                <input type="checkbox" checked={chosen.includes(type)} onChange={() => turn(type)} />
                {type.slice(family.length + 1).replaceAll("_", " ")}
              </label>
            ))}
          </section>
        ))}
      </div>
    </fieldset>
  );
}
