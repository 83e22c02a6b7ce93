import { setTimeout as wait } from 'node:timers/promises';
import { table } from './page.mjs';
import { TEXT_KINDS } from './payload.mjs';
import { IN_FLIGHT, OpenWay, tinyServer } from './ways.mjs';

const MIB = 1024 * 1024;
const SERVERS = 5;

/**
 * Resident memory in MiB of what stands between, with five servers: idle, at most under load, and some time after it.
 * What is not a gateway has a process for each server, which are added up. The load is small calls, 1 MiB and 10 MiB
 * results on all servers at once.
 */
export async function measureMemory(ways, folder, { seconds, settleSeconds }) {
  const results = new Map();
  for (const way of ways.filter(({ isProbed }) => isProbed)) {
    const keys = Array.from({ length: SERVERS }, (_, index) => `server${index + 1}`);
    const opened = await OpenWay.open(way, folder, Object.fromEntries(keys.map((key) => [key, tinyServer()])));
    try {
      await wait(IDLE_MS);
      const idle = (await opened.ask('resident')) / MIB;
      await load(opened, keys, seconds * 1000);
      const peak = (await opened.ask('peak-resident')) / MIB;
      await wait(settleSeconds * 1000);
      results.set(way.name, { idle, peak, after: (await opened.ask('resident')) / MIB });
    } finally {
      await opened.close();
    }
  }
  return results;
}

const IDLE_MS = 2_000;
const [TEXT, OTHER_TEXT] = TEXT_KINDS;

async function load(way, keys, forMs) {
  let isOver = false;
  const rest = { isOver: () => isOver, check: () => true };
  const running = keys.flatMap((key) => {
    const echo = way.to(key, 'echo');
    const produce = way.to(key, 'produce');
    const produced = (kind, mib) => produce.client.call(produce.tool, JSON.stringify({ kind, bytes: mib * MIB }), rest);
    const small = echo.client.call(echo.tool, '{"text":"hello"}', { ...rest, inFlight: IN_FLIGHT / 2 });
    return [small, produced(TEXT, 1), produced(OTHER_TEXT, 10)];
  });
  await wait(forMs);
  isOver = true;
  await Promise.all(running);
}

export function memoryTables(results, { seconds, settleSeconds }) {
  const rows = [...results].map(([name, { idle, peak, after }]) => [
    name,
    idle.toFixed(0),
    peak.toFixed(0),
    after.toFixed(0),
    `${(after / idle).toFixed(2)} ×`,
  ]);
  return [
    `Resident memory with ${SERVERS} servers, MiB; ${seconds} s of load:`,
    table(['', 'idle', 'at most', `${settleSeconds} s after`, '÷ idle'], rows),
  ];
}
