// A form made from a version's schema, with the hints its app team gave.
import Form from "@rjsf/core/lib/components/Form.js";
import type { RJSFSchema } from "@rjsf/utils";
import { useMemo } from "react";
import { BUTTONS } from "./buttons";
import { errorSchema, type Hints, uiSchema } from "./fields";
import { validator } from "./validator";
import type { Refusal } from "./wish";

interface Props {
  title: string;
  schema: RJSFSchema;
  hints: unknown;
  value: Record<string, unknown>;
  /** What the server said of these fields. */
  refused: Refusal[];
  onChange: (value: Record<string, unknown>, valid: boolean) => void;
}

const TEMPLATES = { ButtonTemplates: BUTTONS };

export function SchemaForm({ title, schema, hints, value, refused, onChange }: Props) {
  const ui = useMemo(() => uiSchema(schema, hints as Hints | undefined), [schema, hints]);
  const extraErrors = useMemo(() => errorSchema(refused), [refused]);
  return (
    <section className="panel" aria-label={title}>
      <h2>{title}</h2>
      <Form
        idPrefix={title.toLowerCase()}
        schema={schema}
        uiSchema={ui}
        formData={value}
        validator={validator}
        templates={TEMPLATES}
        liveValidate="onChange"
        showErrorList={false}
        noHtml5Validate
        extraErrors={extraErrors}
        extraErrorsBlockSubmit={false}
        tagName="div"
        onChange={({ formData, errors }) => onChange(formData ?? {}, errors.length === 0)}
      />
    </section>
  );
}
