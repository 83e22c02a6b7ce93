import { setTimeout } from 'node:timers/promises';
import { errorCode } from '../errors/error-text.js';

/*
 * Windows refuses to replace, rename, remove or open a file while another program has it open and does not share it. Virus scanners,
 * indexers, editors and other gateways hold files for some milliseconds, so such a refusal is tried again for a bounded time. Other
 * systems have no such refusal: there, the same codes mean permissions, and are reported at once.
 */

/** The codes of a file that is held. Windows gives the same ones for missing permissions. */
const HELD: ReadonlySet<unknown> = new Set(['EACCES', 'EBUSY', 'EPERM']);

/** Pauses between two attempts, in milliseconds: 1.3 seconds together. */
const PAUSES_MS = [5, 10, 20, 40, 80, 160, 320, 640];
/** The pauses of a caller that holds the event loop meanwhile: 0.3 seconds together. */
const SYNC_PAUSES_MS = PAUSES_MS.slice(0, 6);

/** The pauses on a platform, as in `process.platform`. */
export function pausesOn(platform: string, pausesMs = PAUSES_MS): readonly number[] {
  return platform === 'win32' ? pausesMs : [];
}

const PAUSES = pausesOn(process.platform);
const SYNC_PAUSES = pausesOn(process.platform, SYNC_PAUSES_MS);

/** Does the work, and again after each pause while another program holds the file. Rejects with the error of the last attempt. */
export async function whenFree<T>(work: () => Promise<T>, pausesMs = PAUSES): Promise<T> {
  for (const pauseMs of pausesMs) {
    try {
      return await work();
    } catch (error) {
      if (!HELD.has(errorCode(error))) throw error;
    }
    await setTimeout(pauseMs);
  }
  return await work();
}

/** `whenFree`, for callers that must know the outcome at once. */
export function whenFreeSync<T>(work: () => T, pausesMs = SYNC_PAUSES): T {
  for (const pauseMs of pausesMs) {
    try {
      return work();
    } catch (error) {
      if (!HELD.has(errorCode(error))) throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
  }
  return work();
}
