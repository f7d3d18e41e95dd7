// A time axis that can fold what is quiet. A run that worked for two seconds and waited for a day would be two slivers
// and a void; folded, each long quiet stretch takes little room and says how long it really was.

export interface Span {
  from: number;
  to: number;
}

export interface Fold extends Span {
  /** Where it is drawn, as parts of the whole width. */
  left: number;
  right: number;
}

export interface Scale extends Span {
  /** The part of the width, 0 to 1, at which a moment is drawn. */
  at(moment: number): number;
  folds: Fold[];
  /** Whether folding would change anything. */
  foldable: boolean;
  ticks: { moment: number; at: number }[];
}

interface Piece extends Span {
  width: number;
  folded: boolean;
}

/** A quiet stretch keeps at most this part of the time that was busy. */
const QUIET_SHARE = 0.4;
/** Room that a fold has even where next to nothing was busy. */
const FOLD_ROOM = 250;
/** What is quiet for less than this is not worth a fold. */
const SHORTEST_FOLD = 1500;

export function timeScale(whole: Span, busy: Span[], fold: boolean): Scale {
  const to = Math.max(whole.to, whole.from + 1);
  const pieces = piecesOf({ from: whole.from, to }, busy);
  const foldable = pieces.some((piece) => piece.folded);
  const drawn = fold ? pieces : [{ from: whole.from, to, width: to - whole.from, folded: false }];
  const total = drawn.reduce((sum, piece) => sum + piece.width, 0);

  let left = 0;
  const placed = drawn.map((piece) => {
    const start = left;
    left += piece.width / total;
    return { ...piece, left: start, right: left };
  });
  const at = (moment: number): number => {
    const piece = pieceAt(placed, moment);
    if (!piece) return 0;
    const part = (moment - piece.from) / (piece.to - piece.from);
    return Math.min(1, Math.max(0, piece.left + part * (piece.right - piece.left)));
  };
  const folds = placed.filter((piece) => piece.folded).map(({ from, to, left, right }) => ({ from, to, left, right }));
  return { from: whole.from, to, at, folds, foldable, ticks: ticksOf(whole.from, to, at, folds) };
}

/** The first piece that ends at this moment or later, else the last one. They are in order, and may be many. */
function pieceAt<P extends Span>(pieces: P[], moment: number): P | undefined {
  let [low, high] = [0, pieces.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (moment <= (pieces[middle] as P).to) high = middle;
    else low = middle + 1;
  }
  return pieces[low];
}

/** Busy stretches at their length, quiet ones at theirs or, if long, at a share of what is busy. */
function piecesOf(whole: Span, busy: Span[]): Piece[] {
  const merged = merge(
    busy.map((span) => ({ from: Math.max(span.from, whole.from), to: Math.min(span.to, whole.to) })),
  );
  const busyTime = merged.reduce((sum, span) => sum + span.to - span.from, 0);
  const most = Math.max(FOLD_ROOM, busyTime * QUIET_SHARE);
  const pieces: Piece[] = [];
  let at = whole.from;
  const quietUntil = (to: number) => {
    if (to <= at) return;
    const length = to - at;
    pieces.push({ from: at, to, width: Math.min(length, most), folded: length > Math.max(SHORTEST_FOLD, most * 2) });
    at = to;
  };
  for (const span of merged) {
    quietUntil(span.from);
    if (span.to > at) pieces.push({ from: at, to: span.to, width: span.to - at, folded: false });
    at = Math.max(at, span.to);
  }
  quietUntil(whole.to);
  return pieces.map((piece) => (piece.folded ? piece : { ...piece, width: piece.to - piece.from }));
}

function merge(spans: Span[]): Span[] {
  const sorted = spans.filter((span) => span.to >= span.from).sort((one, other) => one.from - other.from);
  const merged: Span[] = [];
  for (const span of sorted) {
    const last = merged.at(-1);
    if (last && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else merged.push({ ...span });
  }
  return merged;
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
].concat([72e5, 144e5, 216e5, 432e5, 864e5, 2 * 864e5, 7 * 864e5, 30 * 864e5]);
const CLOSEST_TICKS = 0.07;

/** Round distances from the start, none inside a fold and none too close to the one before. */
function ticksOf(from: number, to: number, at: (moment: number) => number, folds: Fold[]): Scale["ticks"] {
  const folded = folds.reduce((sum, fold) => sum + fold.to - fold.from, 0);
  const step = STEPS.find((size) => (to - from - folded) / size <= 7) ?? to - from;
  const count = Math.min(500, Math.floor((to - from) / step));
  const ticks: Scale["ticks"] = [];
  for (let index = 0; index <= count; index++) {
    const tick = { moment: from + index * step, at: at(from + index * step) };
    const last = ticks.at(-1);
    const inside = folds.some((fold) => tick.moment > fold.from && tick.moment < fold.to);
    if (!inside && (!last || tick.at - last.at >= CLOSEST_TICKS)) ticks.push(tick);
  }
  return ticks;
}
