import { basename, dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { HAS_GROUPS, identify, isRunning } from '../../../host/process/processes.js';
import { openControl } from '../../../hub/attach/control-client.js';
import { gatewayFolders } from '../../../hub/hub-folder.js';
import { type FoundGateway, findGateways } from '../../../state/gateway-file.js';
import { userHubsFolder } from '../../../state/user-files.js';
import { VERSION } from '../../../version.js';
import type { Invocation } from '../../command.js';
import { elapsed, note, printJson } from '../../output.js';
import { waiting } from '../../terminal.js';
import { configurationOf, isNamedGateway } from '../hub/running.js';

const POLL_MS = 100;

/** `trunkline drain`: lets the HTTP gateways of the configuration end after their calls, or that of a URL or pid, and waits for their ends. */
export async function drain({ settings, words: [named], isJson }: Invocation): Promise<number> {
  const running = (await findGateways(gatewayFolders(userHubsFolder()))).filter(isHttp);
  const { file, fault } = named === undefined ? configurationOf(settings) : {};
  const chosen = running.filter((each) =>
    named === undefined ? each.configFile === file : isNamedGateway(each, named),
  );
  if (chosen.length === 0) {
    note(fault?.report ?? `No gateway of yours serves ${named ?? `${file} over HTTP`}, so there is nothing to drain.`);
    for (const { url, pid, configFile } of running)
      note(`\`trunkline drain ${url}\` drains the one of ${configFile} (pid ${pid}).`);
    if (fault !== undefined) return EXIT.usage;
  }
  const since = performance.now();
  await Promise.all(chosen.map(drainOne));
  if (isJson) await printJson({ drained: chosen.map(({ url, pid }) => ({ url, pid })) });
  for (const { url, pid } of chosen) note(`The gateway at ${url} (pid ${pid}) has ended, after ${elapsed(since)}.`);
  return EXIT.ok;
}

type HttpGateway = FoundGateway & { readonly url: string };

function isHttp(gateway: FoundGateway): gateway is HttpGateway {
  return gateway.url !== null;
}

interface DrainedGateway {
  readonly url: string;
  readonly pid: number;
  readonly isDraining: boolean;
  readonly folder: string;
}

/** Asks a gateway to drain, unless it does already, and waits for its end. */
export async function drainOne({ url, pid, isDraining, folder }: DrainedGateway): Promise<void> {
  const identity = await identify(pid);
  if (identity === undefined) return;
  note(
    `The gateway at ${url} (pid ${pid}) ${isDraining ? 'drains already' : 'drains'}: it finishes the calls in flight, and then ends.`,
  );
  // A second signal would end the calls at once.
  if (!isDraining && HAS_GROUPS) process.kill(pid, 'SIGTERM');
  else if (!isDraining) await askToDrain(folder, url);
  const ended = async () => {
    while (await isRunning({ pid, ...identity })) await setTimeout(POLL_MS);
  };
  await waiting(`waiting for the calls of ${url}`, ended());
}

/** Windows has no signals: `process.kill` would end the gateway at once, with its calls. */
async function askToDrain(folder: string, url: string): Promise<void> {
  const control = await openControl(dirname(folder), VERSION, basename(folder));
  if (typeof control === 'string')
    throw new UsageError(`the gateway at ${url} takes no commands`, 'press Ctrl-C in its terminal, or end its process');
  await control.request('drain');
  control.close();
}
