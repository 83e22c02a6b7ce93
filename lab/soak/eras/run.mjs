import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { cutStreams } from './cut-streams.mjs';
import { returnClients } from './returning-clients.mjs';
import { suspendCalls } from './suspended-calls.mjs';

/** Clients and servers of different protocol eras, and what is kept for them meanwhile. */
export const eras = {
  name: 'S-15',
  title: 'suspended calls, streams that are cut, and clients that come back',
  full: { repetitions: 3, cuts: 6, times: 100 },
  short: { repetitions: 1, cuts: 3, times: 10 },
  run,
};

/** All at once, because each has gateways of its own and waits most of the time. */
async function run({ repetitions, cuts, times, folder }) {
  const own = () => mkdtempSync(join(folder, 'part-'));
  const parts = await Promise.all([
    suspendCalls({ folder: own(), repetitions }),
    cutStreams({ folder: own(), cuts }),
    returnClients({ folder: own(), times }),
  ]);
  return {
    facts: parts.flatMap(({ facts }) => facts),
    tables: parts.flatMap(({ tables = [] }) => tables),
    targets: parts.flatMap(({ targets }) => targets),
  };
}
