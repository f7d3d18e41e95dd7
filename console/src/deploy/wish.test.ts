import type { RJSFSchema } from "@rjsf/utils";
import { describe, expect, it } from "vitest";
import { errorSchema, uiSchema } from "./fields";
import { validator } from "./validator";
import { command, request, type Wish } from "./wish";

const WISH: Wish = {
  name: " greeter ",
  allocation: "",
  resources: {},
  pair: undefined,
  variant: "",
  packages: "",
  config: {},
};

describe("the request to deploy", () => {
  it("asks for nothing that was left open", () => {
    expect(request("hello", "1.0.0", WISH)).toEqual({ app_slug: "hello", version: "1.0.0", display_name: "greeter" });
  });

  it("holds everything that was chosen, as the API has it", () => {
    const chosen = {
      ...WISH,
      allocation: "a",
      resources: { gpu_count: "2", cpu_cores: "" },
      packages: " numpy \n\n pandas>=2",
      variant: "nvidia",
      config: { greeting: "hi" },
    };
    expect(request("hello", "1.0.0", chosen)).toMatchObject({
      placement_intent: { allocation_id: "a" },
      resources: { gpu_count: 2 },
      packages: ["numpy", "pandas>=2"],
      variant: "nvidia",
      config: { greeting: "hi" },
    });
  });
});

describe("the same as a command", () => {
  it("says what was chosen in the words of a shell", () => {
    const chosen = { ...WISH, resources: { gpu_count: "2" }, allocation: "a-b", config: { greeting: "it's me" } };
    expect(command("hello", "1.0.0", chosen, undefined)).toBe(
      "gpuaas up hello --version 1.0.0 --name greeter --gpus 2 --allocation a-b --config 'greeting=it'\\''s me'",
    );
  });

  it("is not offered where the command has no word for what is asked", () => {
    expect(command("hello", "1.0.0", { ...WISH, variant: "nvidia" }, undefined)).toBeNull();
    expect(command("hello", "1.0.0", { ...WISH, config: { list: [1] } }, undefined)).toBeNull();
  });
});

describe("the form", () => {
  const schema: RJSFSchema = {
    type: "object",
    required: ["model"],
    properties: { model: { type: "string" }, size: { type: "integer", maximum: 8 } },
  };

  it("names the field that is missing and the one that is wrong", () => {
    const { errorSchema } = validator.validateFormData({ size: 9 }, schema);
    expect(errorSchema).toMatchObject({ model: { __errors: ["must be filled in"] } });
    expect(errorSchema?.size?.__errors).toHaveLength(1);
  });

  it("judges parts of a schema with the definitions of the whole", () => {
    const whole = { $defs: { small: { maximum: 3 } } };
    expect(validator.isValid({ $ref: "#/$defs/small" }, 2, whole)).toBe(true);
    expect(validator.isValid({ $ref: "#/$defs/small" }, 4, whole)).toBe(false);
  });

  it("follows the hints of the app team, as far as they name fields that exist", () => {
    const hints = { order: ["size", "gone"], fields: { "/model": { placeholder: "a model" }, "/gone": {} } };
    expect(uiSchema(schema, hints)).toMatchObject({
      "ui:order": ["size", "*"],
      model: { "ui:placeholder": "a model" },
    });
  });

  it("shows at each field what the server said of it", () => {
    const refused = [
      { pointer: "/model", message: "is unknown" },
      { pointer: "/a/b", message: "is wrong" },
    ];
    expect(errorSchema(refused)).toEqual({ model: { __errors: ["is unknown"] }, a: { b: { __errors: ["is wrong"] } } });
  });
});
