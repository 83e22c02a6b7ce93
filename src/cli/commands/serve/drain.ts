import { setTimeout } from 'node:timers/promises';
import { ConfigLocation } from '../../../config/file/find-config.js';
import { EXIT } from '../../../errors/usage-error.js';
import { identify, isRunning } from '../../../process/processes.js';
import { type FoundHttpGateway, findHttpGateways } from '../../../state/http-gateway-file.js';
import { httpGatewayFolder } from '../../../state/user-files.js';
import type { Invocation } from '../../command.js';
import { note, printJson } from '../../output.js';
import { elapsed, waiting } from '../../terminal.js';

const POLL_MS = 100;

/** `trunkline drain`: sends SIGTERM to the HTTP gateways of the configuration, or to that of a URL, and waits for their ends. */
export async function drain({ settings, words: [url], isJson }: Invocation): Promise<number> {
  const running = await findHttpGateways(httpGatewayFolder());
  const configFile = url === undefined ? new ConfigLocation(settings).file : undefined;
  const chosen = running.filter((each) => (url === undefined ? each.configFile === configFile : each.url === url));
  if (chosen.length === 0)
    note(`No gateway of yours serves ${url ?? `${configFile} over HTTP`}, so there is nothing to drain.`);
  const since = performance.now();
  await Promise.all(chosen.map(drainOne));
  if (isJson) await printJson({ drained: chosen.map(({ url, pid }) => ({ url, pid })) });
  for (const { url, pid } of chosen) note(`The gateway at ${url} (pid ${pid}) has ended, after ${elapsed(since)}.`);
  return EXIT.ok;
}

async function drainOne({ url, pid, isDraining }: FoundHttpGateway): Promise<void> {
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
