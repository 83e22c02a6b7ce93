// Measures the ids of sessions inside one process. `ids.mjs` puts it together with the code of this checkout.
import { readFileSync } from 'node:fs';
import { SealedIds } from '../../src/downstream/http/sealed-ids.js';

const [ROUNDS, WARM] = [20_000, 5_000];
const OWNER = { principal: 'p'.repeat(64), endpoint: undefined };

/** Microseconds of processor time for each step, and the length of the id of each client. `file` has the params of `initialize` by client. */
export function measure(file) {
  const keys = [Buffer.alloc(32, 1)];
  const ids = new SealedIds({ sessionKeys: keys, eventKeys: keys, instance: 'aaaaaaaaaa' });
  const clients = Object.entries(JSON.parse(readFileSync(file, 'utf8'))).map(([name, params]) => [
    name,
    Buffer.from(JSON.stringify(params)),
  ]);
  const [[, params]] = clients;
  const id = ids.sealSession(params, OWNER);
  const forged = `${id.slice(0, -1)}${id.endsWith('A') ? 'B' : 'A'}`;
  return {
    sealUs: microseconds(() => ids.sealSession(params, OWNER)),
    openUs: microseconds(() => ids.openSession(id, OWNER)),
    refuseUs: microseconds(() => ids.openSession(forged, OWNER)),
    lengths: Object.fromEntries(clients.map(([name, each]) => [name, ids.sealSession(each, OWNER).length])),
  };
}

function microseconds(step) {
  for (let n = 0; n < WARM; n += 1) step();
  const before = process.cpuUsage();
  for (let n = 0; n < ROUNDS; n += 1) step();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / ROUNDS;
}
