import { setFlagsFromString } from 'node:v8';

/** Longer than servers take to start, most of the time. */
const HELD_MS = 5_000;

/**
 * Keeps V8 from enlarging its space for young objects while we start. What is loaded stays, and V8 takes that for a
 * reason to double the space again and again, which it does not undo. Under load it still grows, later.
 */
export function holdYoungSpace(): void {
  growBy(1);
  setTimeout(() => growBy(V8_DEFAULT), HELD_MS).unref();
}

const V8_DEFAULT = 2;

function growBy(factor: number): void {
  setFlagsFromString(`--semi-space-growth-factor=${factor}`);
}
