import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Span } from '../../src/json/json-text.js';
import { type Edit, splice, splicedLength } from '../../src/json/splice.js';
import { type Envelope, EnvelopeScanner } from '../../src/jsonrpc/envelope-scanner.js';
import { repetitions } from '../support/repetitions.js';
import { Seeded } from '../support/seeded.js';
import { MAX_DEPTH, MAX_ELEMENTS, randomLine, unspoiltLine, WATCH } from './random-lines.js';
import { expectedOf, findDifference } from './reference-scan.js';

const LINES_PER_SEED = 1_000;
/** How many seeds each property is checked with. */
const SCAN_SEEDS = repetitions({ full: 110, short: 16 });
const NEIGHBOR_SEEDS = repetitions({ full: 100, short: 20 });
const SPLICE_SEEDS = repetitions({ full: 20, short: 8 });

const seeds = fc.noShrink(fc.integer());
const scanner = new EnvelopeScanner({ watch: WATCH, maxDepth: MAX_DEPTH, maxElements: MAX_ELEMENTS, isUtf8 });

function shown(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes).toString('latin1'));
}

describe('whatever a line holds', () => {
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
    // ones in more than one of 1,100.
    for (const outcome of ['request', 'notification', 'response', 'not-json', 'not-json-rpc']) {
      expect(seen[outcome], outcome).toBeGreaterThan(18 * SCAN_SEEDS);
    }
    for (const outcome of ['blank', 'not-an-object', 'batch', 'too-deep', 'invalid-utf8', 'duplicate-member']) {
      expect(seen[outcome], outcome).toBeGreaterThan(SCAN_SEEDS / 1.1);
    }
  }, 30_000);
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
  }, 30_000);
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

describe('splicing tokens of a message', () => {
  it('leaves every byte outside of them as it was, and they are found again', () => {
    let spliced = 0;
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = new Seeded(seed);
        for (let count = 0; count < LINES_PER_SEED; count += 1) {
          const line = unspoiltLine(random);
          const message = scanner.scan(line);
          // What is refused is never spliced.
          if (message.kind === 'rejected') continue;
          const fault = findSpliceFault(random, message);
          if (fault !== undefined) throw new Error(fault);
          spliced += 1;
        }
      }),
      { numRuns: SPLICE_SEEDS },
    );
    // At least half of the lines are messages.
    expect(spliced).toBeGreaterThan((SPLICE_SEEDS * LINES_PER_SEED) / 2);
  }, 30_000);
});

const NEW_TOKENS = ['1', '"x"', '""', '1234567890', '-0', '"\\u00e9 , } \\" {"'];
/** `meta` is left out: without it the tokens inside it would be gone, too. */
const SPLICED = ['name', 'progressToken', 'relatedTask', 'nextCursor', 'resultTools'] as const;

/** Splices random tokens of the message; returns what went wrong, if anything. */
function findSpliceFault(random: Seeded, before: Envelope<typeof WATCH>): string | undefined {
  const line = before.bytes;
  const edits: Edit[] = [];
  const texts = new Map<string, string>();
  const edit = (name: string, span: Span | undefined) => {
    if (span === undefined || random.chance(0.3)) return;
    const text = random.pick(NEW_TOKENS);
    edits.push({ span, text: Buffer.from(text) });
    texts.set(name, text);
  };
  edit('id', before.kind === 'notification' ? undefined : before.id);
  for (const name of SPLICED) edit(name, before.tokens[name]);

  const message = { bytes: line, span: before.span, edits: random.shuffle(edits) };
  const out = splice(message);
  const fail = (what: string) => `${what}: ${shown(line)} to ${shown(out)}`;
  if (out.length !== splicedLength(message)) return fail('the length was foretold wrongly');
  let from = before.span.start;
  let at = 0;
  for (const { span, text } of edits.toSorted((a, b) => a.span.start - b.span.start)) {
    if (!equals(out, at, line.subarray(from, span.start))) return fail(`bytes before ${span.start} changed`);
    at += span.start - from;
    if (!equals(out, at, text)) return fail(`the token at ${span.start} is not the new one`);
    at += text.length;
    from = span.end;
  }
  if (!equals(out, at, line.subarray(from, before.span.end))) return fail('bytes at the end changed');

  const after = scanner.scan(out);
  if (after.kind !== before.kind) return fail(`became ${after.kind}`);
  const textAt = (bytes: Uint8Array, span: Span | undefined) =>
    span === undefined ? undefined : Buffer.from(bytes.subarray(span.start, span.end)).toString('latin1');
  for (const name of SPLICED) {
    const expected = texts.get(name) ?? textAt(line, before.tokens[name]);
    if (textAt(out, after.tokens[name]) !== expected) return fail(`${name} is not found again`);
  }
  if (after.kind !== 'notification' && before.kind !== 'notification') {
    const expected = texts.get('id') ?? textAt(line, before.id);
    if (textAt(out, after.id) !== expected) return fail('the id is not found again');
  }
  return undefined;
}

function equals(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(at, at + expected.length), expected) === 0;
}
