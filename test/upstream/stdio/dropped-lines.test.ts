import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { copyInto, LineDecoder, type OversizedLine } from '../../../src/io/line-decoder.js';
import { UnfinishedLines } from '../../../src/io/unfinished-lines.js';
import { findIdInFragments } from '../../../src/upstream/stdio/dropped-lines.js';
import { growthOf, LINEAR } from '../../support/cpu-time.js';
import { FakeClock } from '../../support/fake-clock.js';
import { bridging, sendCall } from './bridging.js';

/** What the decoder leaves of a line that it drops. */
function fragmentsOf(line: string): OversizedLine {
  const dropped: OversizedLine[] = [];
  const losses = { oversized: (fragment: OversizedLine) => dropped.push(fragment), evicted: () => {} };
  copyInto(new LineDecoder({ sink: { line: () => {} }, dropped: losses, maxLineBytes: 16 }), Buffer.from(`${line}\n`));
  const [fragment] = dropped;
  if (fragment === undefined) throw new Error('Not dropped');
  return fragment;
}

function find(line: string): number | undefined {
  return findIdInFragments(fragmentsOf(line));
}

const id = fc.nat();
const space = fc.constantFrom('', '', ' ', '\t ', '\r');
/** Strings that try to look like an id. */
const text = fc.oneof(
  fc.string({ maxLength: 2_000, unit: 'binary' }),
  fc
    .constantFrom(',"id":99}', '"id":99,', ',"id":99,"jsonrpc":"2.0"}', '\\",\\"id\\":99}', '{"id":99,')
    .chain((imitation) => fc.nat(1_500).map((length) => 'x'.repeat(length) + imitation)),
);
const payload = fc.oneof(
  text,
  fc.array(text, { maxLength: 3 }),
  fc.record({ id: fc.constantFrom(99, '99'), text }),
  fc.record({ text, id: fc.constant(99) }),
  fc.record({ text, inner: fc.record({ text, id: fc.constant(99) }) }),
);
const filler = 'x'.repeat(1_200);

describe('the id of an answer that was too long', () => {
  it('is found where answers begin with it', () => {
    fc.assert(
      fc.property(id, space, payload, fc.constantFrom('result', 'error'), (number, gap, value, member) => {
        const rest = `"${member}":${JSON.stringify([value, filler])}}`;
        expect(find(`${gap}{${gap}"id"${gap}:${gap}${number}${gap},${rest}`)).toBe(number);
        expect(find(`{"jsonrpc":${gap}"2.0"${gap},"id":${number},${rest}`)).toBe(number);
      }),
      { numRuns: 300 },
    );
  });

  it('is found where answers end with it', () => {
    fc.assert(
      fc.property(id, space, payload, fc.constantFrom('result', 'error'), (number, gap, value, member) => {
        const rest = `"${member}":${JSON.stringify([filler, value])}`;
        expect(find(`{${rest}${gap},${gap}"id"${gap}:${gap}${number}${gap}}${gap}`)).toBe(number);
        expect(find(`{${rest},"id":${number},"jsonrpc"${gap}:"2.0"}`)).toBe(number);
        expect(find(`{"jsonrpc":"2.0",${rest},"id":${number}}`)).toBe(number);
      }),
      { numRuns: 300 },
    );
  });

  it('is never taken from within the payload', () => {
    fc.assert(
      fc.property(payload, payload, (first, last) => {
        const value = JSON.stringify([first, filler, last]);
        expect(find(`{"jsonrpc":"2.0","result":${value}}`)).toBeUndefined();
        expect(find(`{"result":${value},"jsonrpc":"2.0"}`)).toBeUndefined();
        expect(find(`{"result":{"id":99,"x":${value}}}`)).toBeUndefined();
        expect(find(`{"result":{"x":${value},"id":99}}`)).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['a string', `{"jsonrpc":"2.0","id":"5","result":"${filler}"}`],
    ['null', `{"jsonrpc":"2.0","id":null,"error":"${filler}"}`],
    ['a fraction', `{"jsonrpc":"2.0","id":5.5,"result":"${filler}"}`],
    ['negative', `{"result":"${filler}","id":-5}`],
    ['missing', `${filler}`],
  ])('is none when it is %s', (_, line) => {
    expect(find(line)).toBeUndefined();
  });

  it.each([
    ['at the start', `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":"${filler}"}`],
    ['at the end', `{"jsonrpc":"2.0","method":"sampling/createMessage","params":"${filler}","id":1}`],
  ])("is none when the line is a request of the child's own, with its id %s", (_, line) => {
    expect(find(line)).toBeUndefined();
  });

  it('is found quickly in a line made to be slow to search', () => {
    expect(find(`{"result":"${filler}"${' '.repeat(90)},"id":5${' '.repeat(90)}}${' '.repeat(90)}`)).toBe(5);
    const growth = growthOf((times) => {
      const line = `{${' '.repeat(1.5 * times)}${',"id":'.repeat(times)}${'1'.repeat(1.5 * times)}`;
      expect(find(line)).toBeUndefined();
    }, 100);
    expect(growth).toBeLessThan(LINEAR);
  });
});

describe('a line that is dropped before it is finished', () => {
  const beginning = (id: number, bytes: number) =>
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":"`.padEnd(bytes, 'x'));

  function crowded(isPaused = () => false) {
    const time = new FakeClock();
    const schedule = (delayMs: number, task: () => void) => time.schedule(delayMs, task);
    const unfinishedLines = new UnfinishedLines({ maxBytes: 1_000_000, timeoutMs: 30_000, schedule });
    const options = { unfinishedLines, maxFrameBytes: 2_000_000 };
    return { time, hoarder: bridging({ ...options, isPaused }), neighbor: bridging(options) };
  }

  it('because it held the most fails its request at once, as its own violation; the neighbor has none', () => {
    const { hoarder, neighbor } = crowded();
    const [hoarded, wanted] = [sendCall(hoarder.bridge), sendCall(neighbor.bridge)];
    copyInto(hoarder.bridge, beginning(1, 900_000));
    copyInto(neighbor.bridge, beginning(1, 300_000));
    expect(hoarded.listener.told).toEqual(['response_dropped sent']);
    expect(hoarder.junk.map(([, reason]) => reason)).toEqual(['memory-limit']);
    copyInto(neighbor.bridge, Buffer.from('"}\n'));
    expect(wanted.listener.told).toHaveLength(1);
    expect(wanted.listener.outcomes[0]?.kind).toBe('answered');
    expect(hoarder.bridge.counters).toMatchObject({ evicted: 1, oversized: 0, stalled: 0 });
    expect(neighbor.bridge.counters).toMatchObject({ evicted: 0, oversized: 0, stalled: 0 });
    expect(neighbor.health).toEqual([]);
  });

  it('for the third time within a minute is one violation too many, and its end is none', () => {
    const { hoarder, neighbor } = crowded();
    for (let round = 1; round <= 3; round += 1) {
      expect(hoarder.health).toEqual([]);
      copyInto(hoarder.bridge, beginning(round, 900_000));
      copyInto(neighbor.bridge, beginning(round, 300_000));
      if (round < 3) hoarder.say('"}');
      neighbor.say('"}');
    }
    expect(hoarder.health).toEqual(['it sent 3 broken, oversized or unfinished frames within a minute']);
    expect(neighbor.health).toEqual([]);
  });

  it('because no byte came fails its request, and is a violation', () => {
    const { time, hoarder } = crowded();
    const { listener } = sendCall(hoarder.bridge);
    copyInto(hoarder.bridge, beginning(1, 100));
    time.advance(40_000);
    expect(listener.told).toEqual(['response_unfinished sent']);
    expect(hoarder.bridge.counters).toMatchObject({ stalled: 1, evicted: 0 });
    hoarder.say('"}', { jsonrpc: '2.0', id: 2, method: 'ping' });
    expect(hoarder.requests).toHaveLength(1);
    expect(hoarder.bridge.counters).toMatchObject({ stalled: 1, oversized: 0, junk: 0 });
  });

  it('fails its request at its end, if only the end shows the id', () => {
    const { hoarder, neighbor } = crowded();
    const { listener } = sendCall(hoarder.bridge);
    copyInto(hoarder.bridge, Buffer.from('{"result":{"text":"'.padEnd(900_000, 'x')));
    copyInto(neighbor.bridge, beginning(1, 300_000));
    expect(listener.told).toEqual([]);
    hoarder.say('"},"jsonrpc":"2.0","id":1}');
    expect(listener.told).toEqual(['response_dropped sent']);
  });

  it('is no violation of a server that Trunkline does not read', () => {
    const { hoarder, neighbor } = crowded(() => true);
    for (let round = 1; round <= 3; round += 1) {
      copyInto(hoarder.bridge, beginning(round, 900_000));
      copyInto(neighbor.bridge, beginning(round, 300_000));
      hoarder.say('"}');
      neighbor.say('"}');
    }
    expect(hoarder.bridge.counters).toMatchObject({ evicted: 3 });
    expect(hoarder.health).toEqual([]);
  });
});
