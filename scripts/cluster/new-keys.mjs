import { account, target, underLoad } from './load.mjs';
import { newKey } from './place.mjs';
import { restartAll } from './rolling-restart.mjs';

const JOINING = 4;

export const newKeys = {
  name: 'C11',
  about: 'the key is replaced in two steps, with a restart of all gateways after each, and clients join meanwhile',
  run: async () => {
    const run = await underLoad('12s', async (place, { joinLegacy }) => {
      const [older, newer] = [place.key, newKey()];
      const steps = [
        [older, newer],
        [newer, older],
      ];
      for (const [step, keys] of steps.entries()) {
        place.seal(...keys);
        const restarted = restartAll(place);
        // Some of them begin at a gateway of the step before, and go on at one of this step.
        for (let n = 0; n < JOINING; n += 1) await joinLegacy(`step-${step}`, n);
        await restarted;
        for (let n = 0; n < JOINING; n += 1) await joinLegacy(`after-step-${step}`, n);
      }
      return steps.length;
    });
    const { figures, targets, unknown } = account(run);
    return {
      figures: { 'restarts of all gateways': run.done, ...figures },
      targets: [...targets, target('0 calls unknown', unknown.length, unknown.length === 0)],
    };
  },
};
