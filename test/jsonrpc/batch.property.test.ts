import { isUtf8 } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splice } from '../../src/json/splice.js';
import { batchMessage } from '../../src/jsonrpc/batch.js';
import { EnvelopeScanner } from '../../src/jsonrpc/envelope-scanner.js';
import { whole } from '../../src/jsonrpc/message.js';
import { repetitions } from '../support/repetitions.js';
import { Seeded } from '../support/seeded.js';
import { MAX_DEPTH, MAX_ELEMENTS, randomBatch, WATCH } from './random-lines.js';
import { expectedElements, expectedOf, findDifference } from './reference-scan.js';

const LINES_PER_SEED = 1_000;
const SEEDS = repetitions({ full: 30, short: 6 });

const seeds = fc.noShrink(fc.integer());
const scanner = new EnvelopeScanner({ watch: WATCH, maxDepth: MAX_DEPTH, maxElements: MAX_ELEMENTS, isUtf8 });
const seen: Record<string, number> = {};

describe('whatever an array holds', () => {
  it('is taken apart exactly if JSON.parse takes it, into the elements that JSON.parse finds', () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = new Seeded(seed);
        for (let count = 0; count < LINES_PER_SEED; count += 1) {
          const line = randomBatch(random);
          const fault = findFault(line);
          if (fault !== undefined) throw new Error(`${fault}: ${JSON.stringify(Buffer.from(line).toString('latin1'))}`);
        }
      }),
      { numRuns: SEEDS },
    );
    // Every kind of array has to be among the random ones: the frequent kinds in more than 66 of 1,000, the rare ones in
    // more than 3 of 1,000.
    for (const outcome of ['batch', 'batch-too-long', 'not-json', 'message in a batch', 'rejected in a batch']) {
      expect(seen[outcome], outcome).toBeGreaterThan(66 * SEEDS);
    }
    for (const outcome of ['too-deep', 'invalid-utf8', 'empty']) {
      expect(seen[outcome], outcome).toBeGreaterThan(3 * SEEDS);
    }
  }, 30_000);
});

/** What the scanner says wrongly of a line, if anything. */
function findFault(line: Uint8Array): string | undefined {
  const answer = scanner.scan(line);
  const expected = expectedElements(line, MAX_DEPTH);
  note(answer.kind === 'rejected' ? answer.reason : answer.kind);
  const elements = answer.kind === 'rejected' ? answer.elements : undefined;
  if (expected === undefined || expected.length > MAX_ELEMENTS) {
    if (elements !== undefined) return 'was taken apart';
    if (expected !== undefined && answer.kind === 'rejected' && answer.reason !== 'batch-too-long')
      return `is ${answer.reason}`;
    return undefined;
  }
  if (elements === undefined) return 'was not taken apart';
  if (elements.length !== expected.length) return `has ${elements.length} elements, not ${expected.length}`;
  if (elements.length === 0) note('empty');
  const parts = elements.map(({ start, end }) => line.subarray(start, end));
  for (const [index, part] of parts.entries()) {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(part);
    if (text !== text.trim()) return `element ${index} has white space around it`;
    if (!isDeepStrictEqual(JSON.parse(text), expected[index])) return `element ${index} is another one`;
    // Read as if it had come alone.
    const alone = scanner.scan(part);
    note(alone.kind === 'rejected' ? 'rejected in a batch' : 'message in a batch');
    const difference = findDifference(alone, expectedOf(part, WATCH, MAX_DEPTH), WATCH);
    if (difference !== undefined) return `element ${index} ${difference}`;
  }
  return findReassemblyFault(parts);
}

/** Put together again, the elements are the same. */
function findReassemblyFault(parts: readonly Uint8Array[]): string | undefined {
  const line = splice(batchMessage(parts.map(whole)));
  const again = scanner.scan(line);
  const elements = again.kind === 'rejected' ? again.elements : undefined;
  const areSame = elements?.every(
    ({ start, end }, index) => Buffer.compare(line.subarray(start, end), parts[index] ?? new Uint8Array()) === 0,
  );
  return areSame === true && elements?.length === parts.length ? undefined : 'is another one when put together again';
}

function note(outcome: string): void {
  seen[outcome] = (seen[outcome] ?? 0) + 1;
}
