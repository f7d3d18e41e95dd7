// A value as it travelled, redacted by the server.
import { memo } from "react";
import { Copy } from "../ui/Copy";

export const Json = memo(function Json({ title, value, none }: { title: string; value: unknown; none?: string }) {
  const text = value === null || value === undefined ? null : JSON.stringify(value, null, 2);
  return (
    <section className="json">
      <header>
        <h3>{title}</h3>
        {text && <Copy text={text} label={`Copy ${title.toLowerCase()}`} />}
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      {text ? <pre tabIndex={0}>{text}</pre> : <p className="quiet">{none ?? "None."}</p>}
    </section>
  );
});
