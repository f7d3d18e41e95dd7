import { describe, expect, it } from "vitest";
import { timeScale } from "./scale";

const HOUR = 3_600_000;

describe("the time axis", () => {
  it("is straight unless it folds", () => {
    const scale = timeScale({ from: 1000, to: 3000 }, [{ from: 1000, to: 1100 }], false);
    expect([1000, 1500, 2000, 3000].map(scale.at)).toEqual([0, 0.25, 0.5, 1]);
    expect(scale.folds).toEqual([]);
  });

  it("folds a long quiet stretch and says how long it was", () => {
    const busy = [
      { from: 0, to: 2000 },
      { from: HOUR, to: HOUR + 2000 },
    ];
    const scale = timeScale({ from: 0, to: HOUR + 2000 }, busy, true);
    expect(scale.folds).toHaveLength(1);
    expect(scale.folds[0]).toMatchObject({ from: 2000, to: HOUR });
    expect(scale.at(2000)).toBeGreaterThan(0.3);
    expect(scale.at(HOUR)).toBeLessThan(0.7);
  });

  it("never runs backwards and never leaves the picture", () => {
    const busy = [
      { from: 500, to: 900 },
      { from: 800, to: 1200 },
      { from: 9 * HOUR, to: 9 * HOUR + 5 },
    ];
    const scale = timeScale({ from: 0, to: 10 * HOUR }, busy, true);
    let last = 0;
    for (let moment = -HOUR; moment <= 11 * HOUR; moment += HOUR / 7) {
      const at = scale.at(moment);
      expect(at).toBeGreaterThanOrEqual(last);
      expect(at).toBeLessThanOrEqual(1);
      last = at;
    }
    expect(scale.at(0)).toBe(0);
    expect(scale.at(10 * HOUR)).toBe(1);
  });

  it("has something to draw for a run of no time at all", () => {
    const scale = timeScale({ from: 5, to: 5 }, [], true);
    expect(scale.at(5)).toBe(0);
    expect(scale.foldable).toBe(false);
  });

  it("keeps its ticks apart and out of the folds", () => {
    const scale = timeScale({ from: 0, to: HOUR }, [{ from: 0, to: 4000 }], true);
    for (const [index, tick] of scale.ticks.entries()) {
      const before = scale.ticks[index - 1];
      if (before) expect(tick.at - before.at).toBeGreaterThanOrEqual(0.07);
      expect(scale.folds.some((fold) => tick.moment > fold.from && tick.moment < fold.to)).toBe(false);
    }
    expect(scale.ticks.length).toBeGreaterThan(1);
  });
});
