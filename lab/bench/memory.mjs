import { setTimeout as wait } from 'node:timers/promises';
import { table } from './page.mjs';
import { TEXT_KINDS } from './payload.mjs';
import { IN_FLIGHT, OpenWay, tinyServer } from './ways.mjs';

const MIB = 1024 * 1024;
const SERVERS = 5;

/**
 * Resident memory in MiB of what stands between, with five servers: idle in the first run, and in a second one idle, at
 * most under load, and some time after it. What is not a gateway has a process for each server, which are added up. The
 * load is small calls, 1 MiB and 10 MiB results on all servers at once.
 */
export async function measureMemory(ways, folder, { seconds, settleSeconds }) {
  const results = new Map();
  for (const way of ways.filter(({ isProbed }) => isProbed)) {
    const keys = Array.from({ length: SERVERS }, (_, index) => `server${index + 1}`);
    const open = () => OpenWay.open(way, folder, Object.fromEntries(keys.map((key) => [key, tinyServer()])));
    const first = await open();
    const firstIdle = await whenIdle(first).finally(() => first.close());
    const opened = await open();
    try {
      const idle = await whenIdle(opened);
      await load(opened, keys, seconds * 1000);
      const peak = (await opened.ask('peak-resident')) / MIB;
      await wait(settleSeconds * 1000);
      results.set(way.name, { firstIdle, idle, peak, after: (await opened.ask('resident')) / MIB });
    } finally {
      await opened.close();
    }
  }
  return results;
}

/** Until the engine has tidied up after the start. */
const IDLE_MS = 10_000;

async function whenIdle(way) {
  await wait(IDLE_MS);
  return (await way.ask('resident')) / MIB;
}

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
  const rows = [...results].map(([name, { firstIdle, idle, peak, after }]) => [
    name,
    firstIdle.toFixed(0),
    idle.toFixed(0),
    peak.toFixed(0),
    after.toFixed(0),
    `${(after / idle).toFixed(2)} ×`,
  ]);
  return [
    `Resident memory with ${SERVERS} servers, MiB; ${seconds} s of load:`,
    table(['', 'first run, idle', 'second run, idle', 'at most', `${settleSeconds} s after`, '÷ idle'], rows),
  ];
}
