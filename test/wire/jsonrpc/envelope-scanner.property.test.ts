import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EnvelopeScanner } from '../../../src/wire/jsonrpc/envelope-scanner.js';
import { repetitions } from '../../support/repetitions.js';
import { Seeded } from '../../support/seeded.js';
import { MAX_DEPTH, MAX_ELEMENTS, randomLine, unspoiltLine, WATCH } from './random-lines.js';
import { expectedOf, findDifference } from './reference-scan.js';

const LINES_PER_SEED = 1_000;
/** How many seeds each property is checked with. */
const SCAN_SEEDS = repetitions({ full: 110, short: 3 });
const NEIGHBOR_SEEDS = repetitions({ full: 100, short: 5 });

const seeds = fc.noShrink(fc.integer());
const scanner = new EnvelopeScanner({ watch: WATCH, maxDepth: MAX_DEPTH, maxElements: MAX_ELEMENTS, isUtf8 });

function shown(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes).toString('latin1'));
}

describe('a line with any content', () => {
  it('is a message exactly if JSON.parse and the rules of JSON-RPC say so, and its tokens are where they say', () => {
    const seen: Record<string, number> = {};
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = new Seeded(seed);
        for (let count = 0; count < LINES_PER_SEED; count += 1) {
          const line = randomLine(random);
          const answer = scanner.scan(line);
          const difference = findDifference(answer, expectedOf(line, WATCH, MAX_DEPTH), WATCH);
          if (difference !== undefined) throw new Error(`${difference}: ${shown(line)}`);
          const outcome = answer.kind === 'rejected' ? answer.reason : answer.kind;
          seen[outcome] = (seen[outcome] ?? 0) + 1;
        }
      }),
      { numRuns: SCAN_SEEDS },
    );
    // Every kind of line has to be among the random ones: the frequent kinds in more than 18 of 1,000 lines, the rare
    // ones in more than one of 2,000.
    for (const outcome of ['request', 'notification', 'response', 'not-json', 'not-json-rpc']) {
      expect(seen[outcome], outcome).toBeGreaterThan(18 * SCAN_SEEDS);
    }
    for (const outcome of ['blank', 'not-an-object', 'batch', 'too-deep', 'duplicate-member', 'lookalike-member']) {
      expect(seen[outcome], outcome).toBeGreaterThan(SCAN_SEEDS / 2);
    }
  });
});

describe('a line among others', () => {
  it('is read as if it stood alone, whatever the others are', () => {
    let readInPlace = 0;
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = new Seeded(seed);
        for (let count = 0; count < LINES_PER_SEED / 10; count += 1) {
          const lines = Array.from({ length: 1 + random.below(10) }, () =>
            oneLine(random.chance(0.9) ? unspoiltLine(random) : randomLine(random)),
          );
          const chunk = Uint8Array.from(Buffer.concat(lines.flatMap((line) => [line, NEWLINE])));
          let start = 0;
          for (const line of lines) {
            const end = start + line.length;
            const among = scanner.scan(chunk, start, end);
            const alone = scanner.scan(line);
            const isInPlace = among.bytes === chunk;
            if (isInPlace) readInPlace += 1;
            if (factsOf(among, isInPlace ? start : 0) !== factsOf(alone, 0))
              throw new Error(`${shown(line)} in ${shown(chunk)}`);
            start = end + 1;
          }
        }
      }),
      { numRuns: NEIGHBOR_SEEDS },
    );
    // Lines of most chunks are read without a copy: more than one line for every five chunks.
    expect(readInPlace).toBeGreaterThan(20 * NEIGHBOR_SEEDS);
  });
});

const NEWLINE = Buffer.from('\n');

function oneLine(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.map((byte) => (byte === 0x0a ? 0x20 : byte)));
}

/** All that was read of a line that starts at `from`, but for the bytes themselves. */
function factsOf(message: ReturnType<typeof scanner.scan>, from: number): string {
  const { tokens = {}, ...rest } = { ...message, bytes: undefined } as { bytes: undefined; tokens?: object };
  const all = {
    ...rest,
    tokens: Object.fromEntries(Object.keys(WATCH).map((name) => [name, Reflect.get(tokens, name)])),
  };
  return JSON.stringify(all, (name, value) => (name === 'start' || name === 'end' ? value - from : value));
}
