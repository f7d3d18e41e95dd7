// A secret that was just made. Nobody can show it again.
import type { WebhookWithSecret } from "../api/types";
import { Copy } from "../ui/Copy";

export function NewSecret({ made, onDone }: { made: WebhookWithSecret; onDone: () => void }) {
  return (
    <section className="secret" aria-label="The new secret">
      <h2>The secret of {new URL(made.url).host}, shown this once</h2>
      <p>
        Your receiver checks the header <code>webhook-signature</code> by it, as every library of Standard Webhooks
        does.
      </p>
      {made.secret ? (
        <>
          <pre>{made.secret}</pre>
          <Copy text={made.secret} label="Copy the secret" />
        </>
      ) : (
        <p className="tone-bad">It was delivered before. Rotate the secret to get another.</p>
      )}
      <button type="button" onClick={onDone}>
        I have kept it
      </button>
    </section>
  );
}
