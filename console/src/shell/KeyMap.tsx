// Keys for people who keep their hands on the keyboard: single letters, or `g` and a letter to go somewhere. None works
// while somebody writes or a dialog is open.
import { useEffect, useRef } from "react";

type Keys = Record<string, () => void>;

const CHORD_MS = 900;
const NONE = { key: "", at: 0 };

export function useKeys(keys: Keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    // Its own, because all who listen hear every key: the first of them would end what the others wait for.
    let before = NONE;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || busy(event.target)) return;
      const after = before.key === "g" && event.timeStamp - before.at < CHORD_MS;
      const act = latest.current[after ? `g ${event.key}` : event.key];
      before = after ? NONE : { key: event.key, at: event.timeStamp };
      if (!act) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function busy(target: EventTarget | null): boolean {
  const writing =
    target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable]") !== null;
  return writing || document.querySelector("dialog[open]") !== null;
}

const EVERYWHERE: [string, string][] = [
  ["/", "find by correlation id"],
  ["?", "show these keys"],
];
const ON_LISTS: [string, string][] = [
  ["j k", "next and previous row"],
  ["Enter", "open the row"],
];
const ON_RUN: [string, string][] = [
  ["j k", "next and previous line"],
  ["f", "fold or unfold quiet time"],
  ["y", "copy the correlation id"],
  ["Esc", "close what is open"],
];

export function KeyMap({ pages, onClose }: { pages: { key: string; name: string }[]; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const go = pages.map((page): [string, string] => [`g ${page.key}`, page.name]);
  return (
    <dialog ref={dialog} onClose={onClose} onCancel={onClose} aria-labelledby="keys-title" className="keys">
      <h2 id="keys-title">Keyboard</h2>
      <div className="columns">
        <KeyList title="Everywhere" keys={EVERYWHERE} />
        <KeyList title="Go to" keys={go} />
        <KeyList title="On lists" keys={ON_LISTS} />
        <KeyList title="On a run or a trace" keys={ON_RUN} />
      </div>
      <footer>
        <span className="spring" />
        <button type="button" onClick={onClose}>
          Close
        </button>
      </footer>
    </dialog>
  );
}

function KeyList({ title, keys }: { title: string; keys: [string, string][] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
