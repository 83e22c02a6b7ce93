import { createPlatform } from '../../src/app/platform.js';
import { LineDecoder } from '../../src/wire/io/line-decoder.js';
import { READ_BYTES, read } from './inside-reading.mjs';
import { inRounds } from './measure.mjs';

const MIB = 1024 * 1024;
const WARM_UP_ROUNDS = 3;

/** The newline included. A large line does not end where a read does. */
const LINES = [
  { name: 'a line of 100 bytes', unit: 'ns', byteLength: 100 },
  { name: 'a line of 1 MiB', unit: 'ms', byteLength: MIB - 4096 },
  { name: 'a line of 10 MiB', unit: 'ms', byteLength: 10 * MIB - 4096 },
];
const ALONE = { name: '1 MiB read to fresh memory alone', unit: 'ms', byteLength: MIB };

/** Cuts about so many MiB into lines, and reads as many without looking at them. */
export async function measureLines({ rounds, mib }) {
  const cases = [...LINES.map((line) => decoding(line, mib)), { ...ALONE, run: () => readAlone(mib) }];
  const times = await inRounds(cases, rounds, WARM_UP_ROUNDS, async ({ run }) => {
    const startedAt = performance.now();
    const count = run();
    return ((performance.now() - startedAt) * 1e6) / count;
  });
  return cases.map(({ name, unit, byteLength }) => ({ name, unit, byteLength, rounds: times.get(name) }));
}

function decoding({ name, unit, byteLength }, mib) {
  const line = Buffer.alloc(byteLength, 'x');
  line[byteLength - 1] = 0x0a;
  // Small ones are written many at a time, large ones one by one.
  const written = byteLength < READ_BYTES ? Buffer.alloc(Math.floor(MIB / byteLength) * byteLength, line) : line;
  const writes = Math.max(1, Math.round((mib * MIB) / written.length));
  const expected = (writes * written.length) / byteLength;
  let count = 0;
  let bytes = 0;
  const sink = {
    // Builds that are older name no place in a line that is all of the bytes.
    line: (taken, start = 0, end = taken.length) => {
      count += 1;
      bytes += end - start + 1;
    },
    oversized: () => {
      throw new Error(`${name} is too large`);
    },
    evicted: (_head, reason) => {
      throw new Error(`${name} was dropped: ${reason}`);
    },
  };
  const { unfinishedLines, bufferPool } = createPlatform();
  const decoder = new LineDecoder({ sink, dropped: sink, maxLineBytes: 64 * MIB, unfinishedLines, bufferPool });
  const take = (chunk) => decoder.push(chunk, sink);
  const run = () => {
    count = 0;
    bytes = 0;
    for (let write = 0; write < writes; write += 1) read(written, decoder, take);
    if (count !== expected || bytes !== expected * byteLength) {
      throw new Error(`${count} lines with ${bytes} bytes came out of ${expected} with ${expected * byteLength}`);
    }
    return count;
  };
  return { name, unit, byteLength, run };
}

function readAlone(mib) {
  const written = Buffer.alloc(MIB, 'x');
  let bytes = 0;
  for (let write = 0; write < mib; write += 1) {
    read(written, {}, (chunk) => {
      bytes += chunk.length;
    });
  }
  return bytes / MIB;
}
