import { setTimeout } from 'node:timers/promises';
import { EXIT } from '../../../host/errors/usage-error.js';
import { identify, isRunning } from '../../../host/process/processes.js';
import { gatewayFolders } from '../../../hub/hub-folder.js';
import { type FoundGateway, findGateways } from '../../../state/gateway-file.js';
import { userHubsFolder } from '../../../state/user-files.js';
import type { Invocation } from '../../command.js';
import { note, printJson } from '../../output.js';
import { elapsed, waiting } from '../../terminal.js';
import { configurationOf, isNamed } from '../hub/running.js';

const POLL_MS = 100;

/** `trunkline drain`: sends SIGTERM to the HTTP gateways of the configuration, or to that of a URL or pid, and waits for their ends. */
export async function drain({ settings, words: [named], isJson }: Invocation): Promise<number> {
  const running = (await findGateways(gatewayFolders(userHubsFolder()))).filter(isHttp);
  const { file, fault } = named === undefined ? configurationOf(settings) : {};
  const chosen = running.filter((each) => (named === undefined ? each.configFile === file : isNamed(each, named)));
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

/** Sends SIGTERM to a gateway, unless it drains already, and waits for its end. */
export async function drainOne(gateway: Pick<HttpGateway, 'url' | 'pid' | 'isDraining'>): Promise<void> {
  const { url, pid, isDraining } = gateway;
  const identity = await identify(pid);
  if (identity === undefined) return;
  note(
    `The gateway at ${url} (pid ${pid}) ${isDraining ? 'drains already' : 'drains'}: it finishes the calls in flight, and then ends.`,
  );
  // A second signal would end the calls at once.
  if (!isDraining) process.kill(pid, 'SIGTERM');
  const ended = async () => {
    while (await isRunning({ pid, ...identity })) await setTimeout(POLL_MS);
  };
  await waiting(`waiting for the calls of ${url}`, ended());
}
