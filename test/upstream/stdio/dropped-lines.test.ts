import { describe, expect, it } from 'vitest';
import { copyInto } from '../../../src/io/byte-reader.js';
import { createLineMemory } from '../../../src/io/line-decoder.js';
import { bridging, sendCall } from './bridging.js';

describe('a line that is dropped before it is finished', () => {
  const beginning = (id: number, bytes: number) =>
    Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":{"text":"`.padEnd(bytes, 'x'));

  function crowded(isPaused = () => false) {
    const options = { unfinishedLines: createLineMemory(1_000_000), maxFrameBytes: 2_000_000 };
    return { hoarder: bridging({ ...options, isPaused }), neighbor: bridging(options) };
  }

  it('because it held the most fails its request at once, as its own violation; the neighbor has none', () => {
    const { hoarder, neighbor } = crowded();
    const [hoarded, wanted] = [sendCall(hoarder.bridge), sendCall(neighbor.bridge)];
    copyInto(hoarder.bridge, beginning(1, 900_000));
    copyInto(neighbor.bridge, beginning(1, 300_000));
    expect(hoarded.listener.told).toEqual(['response_dropped sent']);
    expect(hoarder.junk.map(([, reason]) => reason)).toEqual(['memory-limit']);
    copyInto(neighbor.bridge, Buffer.from('"}}\n'));
    expect(wanted.listener.told).toHaveLength(1);
    expect(wanted.listener.outcomes[0]?.kind).toBe('answered');
    expect(hoarder.bridge.counters).toMatchObject({ evicted: 1, oversized: 0 });
    expect(neighbor.bridge.counters).toMatchObject({ evicted: 0, oversized: 0 });
    expect(neighbor.health).toEqual([]);
  });

  it('for the third time within a minute is one violation too many, and its end is none', () => {
    const { hoarder, neighbor } = crowded();
    for (let round = 1; round <= 3; round += 1) {
      expect(hoarder.health).toEqual([]);
      copyInto(hoarder.bridge, beginning(round, 900_000));
      copyInto(neighbor.bridge, beginning(round, 300_000));
      if (round < 3) hoarder.say('"}}');
      neighbor.say('"}}');
    }
    expect(hoarder.health).toEqual(['it sent 3 broken, oversized or unfinished frames within a minute']);
    expect(neighbor.health).toEqual([]);
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
      hoarder.say('"}}');
      neighbor.say('"}}');
    }
    expect(hoarder.bridge.counters).toMatchObject({ evicted: 3 });
    expect(hoarder.health).toEqual([]);
  });
});
