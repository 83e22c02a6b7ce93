import { account, target, underLoad } from './load.mjs';

export const rollingRestart = {
  name: 'C3',
  about: 'all gateways are restarted, one after another, with SIGTERM and drain',
  run: async ({ isShort }) => {
    const drainSeconds = isShort ? 30 : 60;
    const run = await underLoad(`${drainSeconds}s`, restartAll);
    const { figures, targets, unknown } = account(run);
    const { codes, seconds } = run.done;
    return {
      figures: { ...figures, 'seconds of the restart of all': seconds.toFixed(1) },
      targets: [
        ...targets,
        target('0 calls unknown', unknown.length, unknown.length === 0),
        target(
          'every gateway exits with 0',
          codes.join(', '),
          codes.every((code) => code === 0),
        ),
        target(`all within 2 × drain, ${2 * drainSeconds} s`, `${seconds.toFixed(1)} s`, seconds <= 2 * drainSeconds),
      ],
    };
  },
};

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
