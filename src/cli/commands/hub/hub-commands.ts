import type { GlobalOptions } from '../../../app/global-options.js';
import { EXIT } from '../../../errors/usage-error.js';
import { VERSION } from '../../../version.js';
import { note, print, printJson } from '../../output.js';
import { lookOf } from '../../terminal.js';
import { describeHubs, withHub } from './hub-access.js';
import { hubText, processText } from './hub-text.js';

/** `trunkline hub status`: which hub runs, and whether earlier ones still drain. */
export async function hubStatus(options: GlobalOptions, isJson: boolean): Promise<number> {
  return await withHub(options, async (reached) => {
    const facts = await describeHubs(reached);
    if (isJson) await printJson(facts);
    else await print(hubText(facts, VERSION));
    return EXIT.ok;
  });
}

/** `trunkline ps`: the hub, its clients and the processes of its servers. */
export async function ps(options: GlobalOptions, isJson: boolean): Promise<number> {
  return await withHub(options, async (reached) => {
    const facts = await describeHubs(reached, true);
    if (isJson) await printJson(facts);
    else await print(processText(facts, lookOf(process.stdout)));
    return EXIT.ok;
  });
}

/** `trunkline restart SERVER`: restarts a server of the running hub. */
export async function restartServer(options: GlobalOptions, server: string, isJson: boolean): Promise<number> {
  return await withHub(options, async ({ control }) => {
    await control.request('restart', { server });
    if (isJson) await printJson({ server, restarting: true });
    else
      note(
        `Server "${server}" is being restarted. Its calls in flight fail. \`trunkline status\` shows when it is ready.`,
      );
    return EXIT.ok;
  });
}
