import { setTimeout } from 'node:timers/promises';
import type { GlobalOptions } from '../../../app/global-options.js';
import { EXIT } from '../../../errors/usage-error.js';
import { plural } from '../../../gateway/status/status-text.js';
import { hubStarter } from '../../../hub/attach/attach.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import { allHubFolders, claimSuccessor, hubNumbers } from '../../../hub/hub-folder.js';
import { identify, isRunning, readCommandLines } from '../../../process/processes.js';
import { userHubsFolder } from '../../../state/user-files.js';
import type { Invocation } from '../../command.js';
import { note, printJson, tell } from '../../output.js';
import { waiting } from '../../terminal.js';
import {
  describeHub,
  findHubSite,
  type HubSite,
  notedPid,
  REFUSED,
  reachHub,
  silentText,
  withHub,
} from './hub-access.js';

/** `trunkline stop`: ends the hub of the configuration and the earlier ones that drain, or every hub of this user. */
export async function stop({ settings, options, isJson }: Invocation<{ all: true }>): Promise<number> {
  if (options.all) {
    const hubs = await Promise.all(allHubFolders(userHubsFolder()).map(stopAllOf));
    return await report(hubs.flat(), isJson, 'No hub of yours runs, so there is nothing to stop.');
  }
  const { configFile, folder } = findHubSite(settings);
  return await report(await stopAllOf(folder), isJson, `No hub runs for ${configFile}, so there is nothing to stop.`);
}

/** Result for one hub that ran, as `--json` prints it. */
interface StoppedHub {
  readonly pid: number | null;
  /** `null` if the hub does not answer. */
  readonly configFile: string | null;
  readonly result: 'stopped' | 'killed' | 'failed';
  /** Clients that stay connected. */
  readonly clients: number | null;
  /** Sentence for the user. */
  readonly text: string;
}

async function report(hubs: readonly StoppedHub[], isJson: boolean, ifNone: string): Promise<number> {
  if (isJson) await printJson({ hubs: hubs.map(({ text: _, ...facts }) => facts) });
  else if (hubs.length === 0) note(ifNone);
  for (const { result, text } of hubs) {
    if (result === 'failed') tell(`trunkline: ${text}`);
    else if (result === 'killed') tell(text);
    else if (!isJson) note(text);
  }
  return hubs.every(({ result }) => result !== 'failed') ? EXIT.ok : EXIT.failed;
}

/** Ends all hubs of one folder that run. */
async function stopAllOf(folder: string): Promise<StoppedHub[]> {
  return (await Promise.all(hubNumbers(folder).map((number) => stopOne(folder, number)))).flat();
}

/** Ends the hub with this number, if it runs. */
async function stopOne(folder: string, number: number): Promise<StoppedHub[]> {
  const control = await reachHub(folder, number);
  if (control === 'not running') return [];
  if (control === 'silent') return [await killSilent(folder, number)];
  if (control === 'refused') return [{ ...UNKNOWN, result: 'failed', text: REFUSED }];
  const { configFile } = await describeHub(control);
  const { clients } = (await control.request('stop')) as { clients: number };
  // The process of the hub ends after the processes of its servers.
  await waiting(`waiting for the end of the hub (pid ${control.pid}) and its servers`, control.closed);
  const who = clients === 1 ? '1 client stays connected and starts' : `${clients} clients stay connected and start`;
  const next = clients === 0 ? '' : ` ${who} a hub again with the next message.`;
  const text = `Stopped the hub of ${configFile} (pid ${control.pid}) and its servers.${next}`;
  return [{ pid: control.pid, configFile, result: 'stopped', clients, text }];
}

const UNKNOWN = { pid: null, configFile: null, clients: null };

/** Kills a silent hub. Its guardian ends its servers. */
async function killSilent(folder: string, number: number): Promise<StoppedHub> {
  const pid = notedPid(folder, number);
  if (pid !== undefined && (await endHubProcess(pid, folder))) {
    const text = `The hub (pid ${pid}) did not answer, so it was killed. Its servers end with it.`;
    return { ...UNKNOWN, pid, result: 'killed', text };
  }
  return { ...UNKNOWN, pid: pid ?? null, result: 'failed', text: silentText(pid) };
}

/** `trunkline hub restart`: another hub serves from now on. The clients move to it when nothing is in flight. */
export async function restartHub({ settings, isJson }: Invocation): Promise<number> {
  return await withHub(settings, async ({ site, control }) => {
    const { clients, pid } = await describeHub(control);
    if (clients.length === 0) {
      await control.request('stop');
      await control.closed;
      if (isJson) await printJson({ result: 'stopped', pid, next: null, moving: 0 });
      else note(`Stopped the hub (pid ${pid}), which had no client. The next client that connects starts another one.`);
      return EXIT.ok;
    }
    const next = await waiting('starting another hub', startNext(settings, site, control));
    if (next === undefined) {
      if (isJson) await printJson({ result: 'failed', pid, next: null, moving: 0 });
      tell('trunkline: The new hub did not start, so the clients stay at the old one. `trunkline logs` says why.');
      return EXIT.failed;
    }
    const { clients: moving } = (await control.request('move')) as { clients: number };
    const { pid: nextPid, version, number } = next;
    const old = `The old one (pid ${pid}) ends when its ${plural(moving, 'client')} ${moving === 1 ? 'has' : 'have'} no call in flight.`;
    if (isJson) await printJson({ result: 'replaced', pid, next: { pid: nextPid, version, number }, moving });
    else note(`A new hub (pid ${nextPid}, version ${version}) serves from now on. ${old}`);
    return EXIT.ok;
  });
}

/** Starts the successor, unless another process has just done so. */
async function startNext(options: GlobalOptions, site: HubSite, { number }: HubControl) {
  const claim = await claimSuccessor(site.folder, number);
  if (claim !== undefined) hubStarter(options, site)(claim);
  const control = await reachHub(site.folder);
  if (typeof control === 'string' || control.number <= number) return undefined;
  const description = await describeHub(control);
  control.close();
  return description;
}

/** Time limit for the end of a process after SIGKILL, and the interval of the checks. */
const GONE_WITHIN_MS = 2_000;
const POLL_MS = 20;

/**
 * Sends SIGKILL to a hub that does not answer. The process with this pid must have `folder`, the folder of the hubs, in its
 * command line, because the pid may belong to another process now. Resolves with whether the process is gone.
 */
export async function endHubProcess(pid: number, folder: string): Promise<boolean> {
  const identity = await identify(pid);
  const found = (await readCommandLines())?.find((each) => each.pid === pid);
  if (identity === undefined || !found?.words.some((word) => word.includes(folder))) return false;
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
  for (let waitedMs = 0; waitedMs < GONE_WITHIN_MS; waitedMs += POLL_MS) {
    if (!(await isRunning({ pid, ...identity }))) return true;
    await setTimeout(POLL_MS);
  }
  return false;
}
