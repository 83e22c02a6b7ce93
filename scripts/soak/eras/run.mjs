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

/** One after the other, so that what one holds is not measured in another. */
async function run({ repetitions, cuts, times, folder }) {
  const parts = [
    await suspendCalls({ folder, repetitions }),
    await cutStreams({ folder, cuts }),
    await returnClients({ folder, times }),
  ];
  return {
    facts: parts.flatMap(({ facts }) => facts),
    tables: parts.flatMap(({ tables = [] }) => tables),
    targets: parts.flatMap(({ targets }) => targets),
  };
}
