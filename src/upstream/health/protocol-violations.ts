import type { Clock } from '../../timing/clock.js';

/** How long an offence is remembered, in milliseconds. */
const WINDOW_MS = 60_000;
/** Broken frames within the window. */
const MAX_FRAMES = 3;
/** Output that is no protocol, within the window. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** Output is added up in pieces of the window as long as this, in milliseconds. */
const SLOT_MS = 1_000;

/**
 * Judges what a child does to the protocol: a broken frame now and then is forgiven, and so is what a server prints that
 * was never meant as a message; three broken frames within a minute, or more than 16 MiB of other output, are not.
 */
export class ProtocolViolations {
  readonly #clock: Clock;
  /** When the last frames were broken; the oldest first. */
  #frames: number[] = [];
  #slots: { readonly from: number; bytes: number }[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A frame was broken or too large. Returns what the child is charged with, if that was one too many. */
  frame(): string | undefined {
    const now = this.#clock.now();
    this.#frames = [...this.#frames.filter((at) => now - at < WINDOW_MS), now];
    return this.#frames.length < MAX_FRAMES ? undefined : `${MAX_FRAMES} broken or oversized frames within a minute`;
  }

  /** So much was written that is no message. Returns what the child is charged with, if that was too much. */
  output(byteLength: number): string | undefined {
    const now = this.#clock.now();
    this.#slots = this.#slots.filter(({ from }) => now - from < WINDOW_MS);
    const last = this.#slots.at(-1);
    if (last !== undefined && now - last.from < SLOT_MS) last.bytes += byteLength;
    else this.#slots.push({ from: now, bytes: byteLength });
    const sum = this.#slots.reduce((bytes, slot) => bytes + slot.bytes, 0);
    return sum > MAX_OUTPUT_BYTES ? 'more than 16 MiB on stdout that is no message, within a minute' : undefined;
  }
}
