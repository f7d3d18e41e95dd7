// The proof that an instance left nothing behind, as the platform signed it. It can be kept and checked anywhere.
import { useQuery } from "@tanstack/react-query";
import { ApiError } from "../api/client";
import { oneOptions, SELDOM } from "../api/queries";
import type { Receipt } from "../api/types";
import { Json } from "../run/Json";
import { Copy } from "../ui/Copy";
import { Facts } from "../ui/Facts";
import { Problem } from "../ui/Feedback";
import { opened } from "./values";

export function ReceiptPanel({ path }: { path: string }) {
  const receipt = useQuery(oneOptions<Receipt>("receipt", `${path}/receipt`, SELDOM));
  if (receipt.error instanceof ApiError && receipt.error.status === 409) return null;
  if (receipt.error) return <Problem error={receipt.error} />;
  if (!receipt.data) return null;
  const { key_id, payload, signature, public_key } = receipt.data;
  return (
    <section className="panel" aria-label="Teardown receipt">
      <header>
        <h2>Teardown receipt</h2>
        <span className="spring" />
        <Copy text={JSON.stringify(receipt.data, null, 2)} label="Copy the signed receipt" />
        <Copy text={public_key} label="Copy the public key" />
      </header>
      <p>The node proved that nothing is left, and the platform signed it.</p>
      <Facts
        facts={[
          ["Signed by", <code key="key">{key_id}</code>],
          ["Signature", <code key="signature">{signature.slice(0, 32)}…</code>],
        ]}
      />
      <Json title="What was signed" value={opened(payload)} />
    </section>
  );
}
