import { account, target, underLoad } from './load.mjs';
import { newKey } from './place.mjs';
import { restartAll, restartTargets } from './rolling-restart.mjs';

const JOINING = 4;
const DRAIN_SECONDS = 30;

/** A busy process resets connections that it has not accepted when it closes its port. The short form has busy processes. */
const UNKNOWN_SHARE = 0.005;

export const newKeys = {
  name: 'C11',
  about: 'the key is replaced in two steps, with a restart of all gateways after each, and clients join meanwhile',
  run: async ({ isShort }) => {
    const run = await underLoad({ isShort, drain: `${DRAIN_SECONDS}s` }, async (place, { joinLegacy }) => {
      const [older, newer] = [place.key, newKey()];
      const steps = [
        [older, newer],
        [newer, older],
      ];
      const restarts = [];
      for (const [step, keys] of steps.entries()) {
        place.seal(...keys);
        const restarting = restartAll(place);
        // Some of them begin at a gateway of the step before, and go on at one of this step.
        for (let n = 0; n < JOINING; n += 1) await joinLegacy(`step-${step}`, n);
        restarts.push(await restarting);
        for (let n = 0; n < JOINING; n += 1) await joinLegacy(`after-step-${step}`, n);
      }
      return restarts;
    });
    const { figures, targets, unknown } = account(run);
    const most = isShort ? Math.floor(run.tally.calls.length * UNKNOWN_SHARE) : 0;
    const codes = run.done.flatMap((restart) => restart.codes);
    const seconds = Math.max(...run.done.map((restart) => restart.seconds));
    return {
      figures: { 'restarts of all gateways': run.done.length, ...figures },
      targets: [
        ...targets,
        target(`≤ ${most} calls unknown`, unknown.length, unknown.length <= most),
        ...restartTargets({ codes, seconds }, DRAIN_SECONDS),
      ],
    };
  },
};
