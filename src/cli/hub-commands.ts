import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import { VERSION } from '../version.js';
import { describeHubs, withHub } from './hub-access.js';
import { restartHub, stopEveryHub, stopHub } from './hub-end.js';
import { hubText, processText } from './hub-text.js';
import { print, tell } from './output.js';
import { notFor } from './usage-errors.js';

interface HubCommandOptions {
  readonly isJson: boolean;
  /** Every hub of this user, not only that of the configuration. */
  readonly isAll: boolean;
}

/** `trunkline hub status|stop|restart`, and `trunkline stop`. */
export async function hubCommand(
  options: GlobalOptions,
  [command = '', ...excess]: readonly string[],
  { isJson, isAll }: HubCommandOptions,
): Promise<number> {
  const which = `hub ${command}`;
  if (excess.length > 0) throw notFor(which, 'arguments');
  if (isAll && command !== 'stop') throw notFor(which, '`--all`');
  if (isJson && command !== 'status') throw notFor(which, '`--json`');
  switch (command) {
    case 'status':
      return await hubStatus(options, isJson);
    case 'stop':
      return await (isAll ? stopEveryHub() : stopHub(options));
    case 'restart':
      return await restartHub(options);
    default:
      throw new UsageError(
        command === '' ? '`trunkline hub` needs a command' : `there is no command \`${which}\``,
        'use `trunkline hub status`, `trunkline hub stop` or `trunkline hub restart`',
      );
  }
}

/** `trunkline hub status`: which hub runs, and whether earlier ones still drain. */
async function hubStatus(options: GlobalOptions, isJson: boolean): Promise<number> {
  return await withHub(options, async (reached) => {
    const facts = await describeHubs(reached);
    await print(isJson ? JSON.stringify(facts) : hubText(facts, VERSION));
    return EXIT.ok;
  });
}

/** `trunkline ps`: the hub, its clients and the processes of its servers. */
export async function ps(options: GlobalOptions, isJson: boolean): Promise<number> {
  return await withHub(options, async (reached) => {
    const facts = await describeHubs(reached, true);
    await print(isJson ? JSON.stringify(facts) : processText(facts));
    return EXIT.ok;
  });
}

/** `trunkline restart SERVER`: restarts a server of the running hub. */
export async function restartServer(options: GlobalOptions, server: string | undefined): Promise<number> {
  if (server === undefined)
    throw new UsageError('`trunkline restart` needs the key of a server', '`trunkline ps` lists the servers');
  return await withHub(options, async ({ control }) => {
    await control.request('restart', { server });
    tell(
      `Server "${server}" is being restarted. Its calls in flight fail. \`trunkline status\` shows when it is ready.`,
    );
    return EXIT.ok;
  });
}
