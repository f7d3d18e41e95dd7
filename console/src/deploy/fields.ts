// From an app team's hints and a server's refusals to what the form library wants to hear.
import type { ErrorSchema, RJSFSchema, UiSchema } from "@rjsf/utils";

export interface Hints {
  order?: string[];
  fields?: Record<string, { placeholder?: string; widget?: string; advanced?: boolean }>;
}

/** Words of the hints, and the widgets that stand for them here. */
const WIDGETS: Record<string, string> = { slider: "range", textarea: "textarea", password: "password", radio: "radio" };

/** A slider needs two ends and whole steps between them. */
function widgetFor(hint: string, field: unknown): string | undefined {
  const { type, minimum, maximum } = (field ?? {}) as Record<string, unknown>;
  const slides = type === "integer" && minimum !== undefined && maximum !== undefined;
  return hint === "slider" && !slides ? undefined : WIDGETS[hint];
}

export function uiSchema(schema: RJSFSchema, hints: Hints | undefined): UiSchema {
  const ui: UiSchema = { "ui:submitButtonOptions": { norender: true }, "ui:title": "", "ui:options": { label: false } };
  const names = Object.keys(schema.properties ?? {});
  const known = (hints?.order ?? []).filter((name) => names.includes(name));
  if (known.length > 0) ui["ui:order"] = [...known, "*"];
  for (const [pointer, hint] of Object.entries(hints?.fields ?? {})) {
    const name = pointer.slice(1);
    if (!names.includes(name)) continue;
    const widget = hint.widget ? widgetFor(hint.widget, schema.properties?.[name]) : undefined;
    ui[name] = {
      ...(hint.placeholder ? { "ui:placeholder": hint.placeholder } : {}),
      ...(widget ? { "ui:widget": widget } : {}),
    };
  }
  return ui;
}

/** A tree of fields, each with what is wrong with it. */
export function errorSchema(refused: { pointer: string; message: string }[]): ErrorSchema {
  const root: ErrorSchema = {};
  for (const { pointer, message } of refused) {
    let at = root as Record<string, unknown>;
    for (const part of pointer.split("/").filter(Boolean)) {
      at[part] ??= {};
      at = at[part] as Record<string, unknown>;
    }
    at.__errors = [...((at.__errors as string[] | undefined) ?? []), message];
  }
  return root;
}
