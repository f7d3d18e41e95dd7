// Where a version wants to be asked where it goes. Most name one allocation, which every form asks for; some have a schema of
// their own, whose fields that name allocations are offered as choices.
import type { RJSFSchema } from "@rjsf/utils";
import type { Allocation } from "../api/types";
import { counted } from "../runtime";
import type { Hints } from "./fields";

/** The schema that needs a form of its own, if the version has one. */
export function ownPlacement(schema: RJSFSchema | null | undefined): RJSFSchema | null {
  const fields = Object.keys(schema?.properties ?? {});
  return schema && fields.some((name) => name !== "allocation_id") ? schema : null;
}

/** The same schema with the project's allocations as the values of those fields that take one, or several. */
export function offering(schema: RJSFSchema, allocations: Allocation[], hints: unknown): RJSFSchema {
  if (allocations.length === 0) return schema;
  const oneOf = allocations.map((one) => ({ const: one.id, title: allocationName(one) }));
  const choice = (name: string, field: RJSFSchema): RJSFSchema => {
    if (!isAllocation(name, hints)) return field;
    return field.type === "array" ? { ...field, items: { type: "string", oneOf } } : { ...field, oneOf };
  };
  const fields = Object.entries(schema.properties ?? {}) as [string, RJSFSchema][];
  return { ...schema, properties: Object.fromEntries(fields.map(([name, field]) => [name, choice(name, field)])) };
}

const isAllocation = (name: string, hints: unknown) =>
  (hints as Hints | undefined)?.fields?.[`/${name}`]?.widget === "allocation" || /(^|_)allocation_ids?$/.test(name);

export function allocationName(one: Allocation): string {
  const gpus = one.gpu_count > 0 ? `${one.gpu_count} × ${one.sku}, ` : "";
  return `${one.id.slice(-12)}: ${gpus}${counted(one.cpu_cores, "core")}, ${one.memory_gib} GiB`;
}
