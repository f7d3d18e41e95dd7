// Checks what was written against a schema without making code of it: the page's policy forbids that. The server checks
// again and decides.
import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import {
  createErrorHandler,
  type RJSFSchema,
  type RJSFValidationError,
  toErrorSchema,
  unwrapErrorHandler,
  type ValidatorType,
  validationDataMerge,
} from "@rjsf/utils";

const DRAFT = "2020-12";
/** These only say that something below them is wrong. */
const WRAPPERS = ["properties", "items", "allOf", "$ref", "if", "then", "else", "dependentSchemas", "prefixItems"];

function problems(schema: RJSFSchema, data: unknown): OutputUnit[] {
  return new Validator(schema as Schema, DRAFT, false).validate(data ?? {}).errors;
}

function told(unit: OutputUnit): RJSFValidationError {
  // A form names fields by dots, and a field that is missing by its parent.
  const missing = unit.keyword === "required" ? /"([^"]+)"/.exec(unit.error)?.[1] : undefined;
  const path = unit.instanceLocation.slice(1).split("/").filter(Boolean);
  const property = [...path, ...(missing ? [missing] : [])].map((part) => `.${part}`).join("");
  const message = missing ? "must be filled in" : unit.error;
  return { name: unit.keyword, property, message, stack: `${property} ${message}`, params: {} };
}

export const validator: ValidatorType = {
  validateFormData(data, schema, customValidate) {
    const units = problems(schema, data).filter((unit) => !WRAPPERS.includes(unit.keyword));
    const errors = units.map(told);
    const found = { errors, errorSchema: toErrorSchema(errors) };
    if (!customValidate) return found;
    const own = unwrapErrorHandler(customValidate(data, createErrorHandler(data)));
    return validationDataMerge(found, own);
  },
  isValid(schema, data, root) {
    const whole = { ...schema, $defs: { ...(root.$defs ?? {}), ...(schema.$defs ?? {}) } };
    return problems(whole, data).length === 0;
  },
  rawValidation(schema, data) {
    return { errors: problems(schema, data) as never[] };
  },
};
