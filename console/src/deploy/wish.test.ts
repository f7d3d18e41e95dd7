import type { RJSFSchema } from "@rjsf/utils";
import { describe, expect, it } from "vitest";
import type { Allocation } from "../api/types";
import { errorSchema, uiSchema } from "./fields";
import { offering, ownPlacement } from "./placement";
import { validator } from "./validator";
import { command, request, type Wish } from "./wish";

const WISH: Wish = {
  name: " greeter ",
  allocation: "",
  placement: {},
  resources: {},
  pair: undefined,
  variant: "",
  artifact: "",
  packages: "",
  credentials: {},
  config: {},
};

const CHOSEN: Wish = {
  ...WISH,
  allocation: "a-b",
  resources: { gpu_count: "2", cpu_cores: "", host_port: "30080" },
  pair: { operating_mode: "tenant_dedicated", control_plane_scope: "tenant" },
  packages: " numpy \n\n pandas>=2",
  variant: "nvidia",
  artifact: "c-d",
  credentials: { model_hub: "e-f", package_index: "" },
  config: { greeting: "it's me", tags: ["a"] },
};

describe("the request to deploy", () => {
  it("asks for nothing that was left open", () => {
    expect(request("hello", "1.0.0", WISH)).toEqual({ app_slug: "hello", version: "1.0.0", display_name: "greeter" });
  });

  it("holds everything that was chosen, as the API has it", () => {
    expect(request("hello", "1.0.0", CHOSEN)).toEqual({
      app_slug: "hello",
      version: "1.0.0",
      display_name: "greeter",
      operating_mode: "tenant_dedicated",
      control_plane_scope: "tenant",
      placement_intent: { allocation_id: "a-b" },
      resources: { gpu_count: 2, host_port: 30080 },
      packages: ["numpy", "pandas>=2"],
      variant: "nvidia",
      artifact_id: "c-d",
      credentials: { model_hub: "e-f" },
      config: { greeting: "it's me", tags: ["a"] },
    });
  });

  it("says where each part goes, where the version asks for more than an allocation", () => {
    const placement = { controller_allocation_id: "a", worker_allocation_ids: [] };
    expect(request("slurm", "1.0.0", { ...WISH, placement })).toMatchObject({
      placement_intent: { controller_allocation_id: "a" },
    });
    expect(command("slurm", "1.0.0", { ...WISH, placement })).toBeNull();
  });
});

describe("the same as a command", () => {
  it("says what was chosen in the words of a shell", () => {
    expect(command("hello", "1.0.0", WISH)).toBe("gpuaas up hello --version 1.0.0 --name greeter");
    expect(command("hello", "1.0.0", CHOSEN)?.split(" --")).toEqual([
      "gpuaas up hello",
      "version 1.0.0",
      "name greeter",
      "mode tenant_dedicated",
      "scope tenant",
      "gpus 2",
      "port 30080",
      "allocation a-b",
      "variant nvidia",
      "artifact c-d",
      "package numpy",
      "package 'pandas>=2'",
      "credential model_hub=e-f",
      "config 'greeting=it'\\''s me'",
      "config 'tags=[\"a\"]'",
    ]);
  });
});

describe("the placement", () => {
  const worker = { type: "array", uniqueItems: true, items: { type: "string" } };
  const schema = {
    type: "object",
    properties: { head_allocation_id: { type: "string" }, worker_allocation_ids: worker },
  };
  const allocation = {
    id: "01970000-0000-7000-8000-00000000000a",
    gpu_count: 2,
    sku: "h100",
    cpu_cores: 8,
    memory_gib: 64,
  };

  it("has a form of its own only where it is more than an allocation", () => {
    expect(ownPlacement({ properties: { allocation_id: {} } })).toBeNull();
    expect(ownPlacement(undefined)).toBeNull();
    expect(ownPlacement(schema as RJSFSchema)).toBe(schema);
  });

  it("offers the project's allocations where one or several are asked for", () => {
    const oneOf = [{ const: allocation.id, title: "00000000000a: 2 × h100, 8 cores, 64 GiB" }];
    expect(offering(schema as RJSFSchema, [allocation as Allocation], undefined).properties).toEqual({
      head_allocation_id: { type: "string", oneOf },
      worker_allocation_ids: { ...worker, items: { type: "string", oneOf } },
    });
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
