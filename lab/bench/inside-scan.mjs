import { createPlatform } from '../../src/app/platform.js';
import { inRounds } from './measure.mjs';
import { ALL_KINDS, textOf } from './payload.mjs';

const MIB = 1024 * 1024;
const WARM_UP_ROUNDS = 10;

/** The look at one message, the result of a tool, with its check of the encoding. */
export async function measureScan({ rounds, scans }) {
  const { scan } = createPlatform();
  const messages = [
    ...ALL_KINDS.map((kind) => messageOf(kind, kind, MIB, 'ms')),
    ...SMALL_KINDS.map((kind) => messageOf(`8 KiB of ${kind}`, kind, MIB / 128, 'ns')),
  ];
  const times = await inRounds(messages, rounds, WARM_UP_ROUNDS, async ({ bytes }) => {
    const startedAt = performance.now();
    for (let count = 0; count < scans; count += 1) {
      const { kind, span } = scan(bytes);
      if (kind !== 'response' || span.end !== bytes.length) throw new Error(`The message is a ${kind} to the scan`);
    }
    return ((performance.now() - startedAt) * 1e6) / scans;
  });
  return messages.map(({ name, unit, bytes }) => ({
    name,
    unit,
    byteLength: bytes.length,
    rounds: times.get(name),
  }));
}

/** Of a size at which what is done once for each string counts. */
const SMALL_KINDS = ['text', 'JSON'];

function messageOf(name, kind, byteLength, unit) {
  const result = { content: [{ type: 'text', text: textOf(kind, byteLength) }] };
  return { name, unit, bytes: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result })) };
}

/** The same where there is no WebAssembly. */
export function measurePlainScan(size) {
  delete globalThis.WebAssembly;
  return measureScan(size);
}
