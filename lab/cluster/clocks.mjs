import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { account, show, target, underUsers } from './load.mjs';
import { Store } from './store.mjs';

/** The library of Debian's package faketime. */
const [LIB, LIBRARY] = ['/usr/lib', 'faketime/libfaketimeMT.so.1'];
/** Seconds by which the clocks of the second and the third gateway are ahead. */
const AHEAD = { 2: 300, 3: -300 };
/** Seconds until tokens end, and the gateways that take them. */
const TOKENS = [
  { lasts: 120, takenBy: [1, 3] },
  { lasts: -120, takenBy: [3] },
];

export const differentClocks = {
  name: 'C8',
  about: 'the clock of a gateway is five minutes ahead, and that of another one five minutes behind',
  needs: ['redis-server'],
  missing: () => (libraryOf() === undefined ? 'the library of faketime' : undefined),
  run: async ({ isShort, users }) => {
    const preload = { LD_PRELOAD: libraryOf(), FAKETIME_DONT_FAKE_MONOTONIC: '1' };
    const env = Object.fromEntries(
      Object.entries(AHEAD).map(([number, seconds]) => [
        number,
        { ...preload, FAKETIME: `${seconds < 0 ? '' : '+'}${seconds}s` },
      ]),
    );
    const run = await underUsers({ isShort, users, store: Store.open, env }, async ({ issuer, instances }) => {
      const taken = [];
      for (const { lasts } of TOKENS) {
        const token = await issuer.token('user-clocks', { lastsSeconds: lasts });
        const statuses = await Promise.all(instances.map(({ address }) => statusOf(address, token)));
        taken.push(instances.filter((_, index) => statuses[index] !== 401).map(({ number }) => number));
      }
      await sleep(isShort ? 8_000 : 90_000);
      return taken;
    });
    const { figures, targets, unknown, unsent } = account(run);
    const lost = [...unknown, ...unsent];
    show(lost);
    return {
      figures,
      targets: [
        ...targets,
        target('0 calls unknown or not sent', lost.length, lost.length === 0),
        ...TOKENS.map(({ lasts, takenBy }, index) => {
          const taken = run.done[index].join(', ');
          const text = lasts < 0 ? `that ended ${-lasts} s ago` : `that ends in ${lasts} s`;
          return target(
            `a token ${text} is valid at ${takenBy.join(', ')} by their clocks`,
            taken,
            taken === takenBy.join(', '),
          );
        }),
      ],
    };
  },
};

async function statusOf(address, token) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const response = await fetch(`${address}/mcp`, { method: 'POST', headers, body: '{}' });
  await response.text();
  return response.status;
}

function libraryOf() {
  const folders = existsSync(LIB) ? readdirSync(LIB) : [];
  return folders.map((folder) => join(LIB, folder, LIBRARY)).find((file) => existsSync(file));
}
