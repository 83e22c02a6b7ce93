import { account, target, underLoad, underUsers } from './load.mjs';
import { Store } from './store.mjs';

const about = 'all gateways are restarted, one after another, with SIGTERM and drain';

export const rollingRestart = { name: 'C3', about, run: ({ isShort }) => restartUnder(underLoad, { isShort }) };

export const clusterRestart = {
  name: 'C3-store',
  about: `${about}, as a cluster with a store`,
  needs: ['redis-server'],
  run: ({ isShort, users }) => restartUnder(underUsers, { isShort, users, store: Store.open }),
};

async function restartUnder(load, { isShort, ...settings }) {
  const drainSeconds = isShort ? 30 : 60;
  const run = await load({ isShort, drain: `${drainSeconds}s`, ...settings }, restartAll);
  const { figures, targets, unknown } = account(run);
  return {
    figures,
    targets: [
      ...targets,
      target('0 calls unknown', unknown.length, unknown.length === 0),
      ...restartTargets(run.done, drainSeconds),
    ],
  };
}

export function restartTargets({ codes, seconds }, drainSeconds) {
  const areClean = codes.every((code) => code === 0);
  const most = 2 * drainSeconds;
  return [
    target('every gateway exits with 0', codes.join(', '), areClean),
    target(`a restart of all within 2 × drain, ${most} s`, `${seconds.toFixed(1)} s`, seconds <= most),
  ];
}

/** Restarts one gateway after another. Resolves with their exit codes and the time. */
export async function restartAll({ instances }) {
  const since = performance.now();
  const codes = [];
  for (const instance of instances) {
    codes.push(await instance.end('SIGTERM'));
    await instance.start();
  }
  return { codes, seconds: (performance.now() - since) / 1_000 };
}
