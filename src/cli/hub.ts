import type { GlobalOptions } from '../app/global-options.js';
import { runHub } from '../app/hub-process.js';
import { UsageError } from '../app/usage-error.js';
import { LISTENER_DESCRIPTOR } from '../hub/attach/start-hub.js';

/** The commands of the shared process. */
export async function hub(options: GlobalOptions, [command]: readonly string[], place?: string): Promise<number> {
  if (command === 'serve' && place !== undefined)
    return await runHub(options, { place, descriptor: LISTENER_DESCRIPTOR });
  throw new UsageError(`there is no command "hub ${command ?? ''}"`, 'see `trunkline hub --help`');
}
