import { describe, expect, it } from "vitest";
import { minorUnits, money, quantity } from "./amounts";

describe("amounts", () => {
  it("reads minor units as the currency has them", () => {
    expect(money(123456, "EUR")).toBe("€1,234.56");
    expect(money(500, "JPY")).toBe("¥500");
    expect(money(-5, "USD")).toBe("-$0.05");
    expect(money(0, null)).toBe("–");
  });

  it("takes an amount as it is written, without a fraction of a minor unit", () => {
    expect(minorUnits("10", "EUR")).toBe(1000);
    expect(minorUnits("10.5", "EUR")).toBe(1050);
    expect(minorUnits("0.07", "EUR")).toBe(7);
    expect(minorUnits("10.005", "EUR")).toBeNull();
    expect(minorUnits("10.5", "JPY")).toBeNull();
    expect(minorUnits("much", "EUR")).toBeNull();
  });

  it("reads seconds as minutes and hours and leaves other units alone", () => {
    expect(quantity(90, "session_seconds")).toBe("1.5 min");
    expect(quantity(7200, "gpu_seconds")).toBe("2 GPU h");
    expect(quantity(12_500, "requests")).toBe("12,500 requests");
  });
});
