import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { GlobalOptions } from '../../../app/global-options.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { identify, isRunning, readCommandLines } from '../../../host/process/processes.js';
import { hubStarter } from '../../../hub/attach/attach.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import { allHubFolders, claimSuccessor, hubNumbers } from '../../../hub/hub-folder.js';
import { userHubsFolder } from '../../../state/user-files.js';
import { capitalized, plural } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { note, printJson, tell } from '../../output.js';
import { waiting } from '../../terminal.js';
import { drainOne } from '../serve/drain.js';
import {
  connectToHub,
  describeHub,
  findGateway,
  type OpenGateway,
  REFUSED,
  silentText,
  withGateway,
} from './hub-access.js';
import {
  configurationText,
  findRunning,
  gatewayTable,
  howToEnd,
  nameOf,
  notedPid,
  type RunningGateway,
} from './running.js';

/**
 * `trunkline stop`: ends the hub of the configuration and the earlier hubs that drain; without a hub, its gateways over HTTP after their
 * calls; with `--all`, every hub of this user. Tells how to end the other gateways. Fails if one could not be ended, or if only others run.
 */
export async function stop({ settings, options, isJson }: Invocation<{ all: true }>): Promise<number> {
  if (options.all) {
    const stopped = (await Promise.all(allHubFolders(userHubsFolder()).map(stopAllOf))).flat();
    const left = (await findRunning()).filter(({ kind }) => kind !== 'hub');
    return await report(stopped, { isJson, left, ifNone: 'No hub of yours runs, so there is nothing to stop.' });
  }
  const { configuration, running, choice } = await findGateway(settings);
  const { file, fault } = configuration;
  const own = choice.chosen === undefined ? [] : [choice.chosen, ...choice.alike];
  const hubs = own.filter(({ kind }) => kind === 'hub');
  // Adds the folders of hubs that drain, because a folder can have no other hubs.
  const draining = settings.gateway === undefined ? running.filter(({ configFile }) => configFile === file) : [];
  const folders = new Set([...hubs, ...draining].flatMap(({ kind, folder }) => (kind === 'hub' ? [folder] : [])));
  const isEnded = ({ kind }: RunningGateway) => kind === 'http' && hubs.length === 0;
  const left = own.filter((each) => each.kind !== 'hub' && !isEnded(each));
  const stopping = [...[...folders].map(stopAllOf), ...own.filter(isEnded).map(stopHttp)];
  const stopped = (await Promise.all(stopping)).flat();
  const none = fault?.report ?? `No gateway of yours runs for ${file}, so there is nothing to stop.`;
  const code = await report(stopped, { isJson, left, ifNone: none });
  const others = choice.others.filter(({ kind }) => kind === 'hub');
  if (stopped.length + left.length > 0) return code;
  if (others.length > 0) note(`Hubs of other configurations run. To stop one, add:\n${gatewayTable(others)}`);
  return fault === undefined ? code : EXIT.usage;
}

/** Result for one gateway that ran, as `--json` prints it. */
interface StoppedHub {
  readonly pid: number | null;
  /** Absent for a hub. */
  readonly url?: string;
  /** `null` if the gateway does not answer, or if its configuration is not known. */
  readonly configFile: string | null;
  readonly result: 'stopped' | 'killed' | 'failed';
  /** Number of clients that stay connected; `null` if it is not known. */
  readonly clients: number | null;
  readonly text: string;
}

interface Reported {
  readonly isJson: boolean;
  /** Gateways that are no hubs and go on. */
  readonly left: readonly RunningGateway[];
  /** Sentence for the case that nothing runs at all. */
  readonly ifNone: string;
}

async function report(hubs: readonly StoppedHub[], { isJson, left, ifNone }: Reported): Promise<number> {
  if (isJson) {
    const others = left.map(({ kind, pid = null, url = null, configFile = null }) => ({ kind, pid, url, configFile }));
    const facts = hubs.map(({ text: _, ...each }) => each);
    const gateways = facts.filter(({ url }) => url);
    await printJson({ hubs: facts.filter(({ url }) => !url), gateways, left: others });
  } else if (hubs.length === 0 && left.length === 0) note(ifNone);
  for (const { result, text } of hubs) {
    if (result === 'failed') tell(`trunkline: ${text}`);
    else if (result === 'killed') tell(text);
    else if (!isJson) note(text);
  }
  for (const gateway of isJson ? [] : left) {
    const name = capitalized(nameOf(gateway));
    note(`${name}, of ${configurationText(gateway)}, goes on: ${howToEnd(gateway)}.`);
  }
  const isIdle = hubs.length === 0 && left.length > 0;
  return isIdle || hubs.some(({ result }) => result === 'failed') ? EXIT.failed : EXIT.ok;
}

async function stopHttp({
  pid,
  url = '',
  configFile = '',
  folder,
  name,
  answer,
}: RunningGateway): Promise<StoppedHub[]> {
  const about = { pid: pid ?? null, url, configFile, clients: null };
  if (pid === undefined || typeof answer === 'string')
    return [{ ...about, result: 'failed', text: silentText(pid, 'http') }];
  await drainOne({ pid, url, isDraining: answer.isDraining, folder: join(folder, String(name)) });
  return [{ ...about, result: 'stopped', text: `Stopped the gateway at ${url} of ${configFile} (pid ${pid}).` }];
}

async function stopAllOf(folder: string): Promise<StoppedHub[]> {
  return (await Promise.all(hubNumbers(folder).map((number) => stopOne(folder, number)))).flat();
}

async function stopOne(folder: string, number: number): Promise<StoppedHub[]> {
  const control = await connectToHub(folder, number);
  if (control === 'not running') return [];
  if (control === 'silent') return [await killSilent(folder, number)];
  if (control === 'refused') return [{ ...UNKNOWN, result: 'failed', text: REFUSED }];
  const { configFile } = await describeHub(control);
  const { clients } = (await control.request('stop')) as { clients: number };
  // The process of the hub ends after the processes of its servers.
  await waiting(`waiting for the end of the hub (pid ${control.pid}) and its servers`, control.closed);
  const who = clients === 1 ? '1 client stays connected' : `${clients} clients stay connected`;
  const again = `${clients === 1 ? 'starts' : 'start'} a hub again with the next message`;
  const gone = `${clients === 1 ? 'needs' : 'need'} that file back, or a restart with another \`--config\``;
  const next = clients === 0 ? '' : ` ${who} and ${existsSync(configFile) ? again : gone}.`;
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

/** `trunkline hub restart`: starts another hub, to which each client moves when nothing is in flight. A hub without clients only stops. */
export async function restartHub({ settings, isJson }: Invocation): Promise<number> {
  const replace = async ({ gateway, control }: OpenGateway): Promise<number> => {
    const { clients, pid, configFile } = await describeHub(control);
    if (clients.length === 0) {
      await control.request('stop');
      await control.closed;
      if (isJson) await printJson({ result: 'stopped', pid, next: null, moving: 0 });
      else note(`Stopped the hub (pid ${pid}), which had no client. The next client that connects starts another one.`);
      return EXIT.ok;
    }
    const next = await waiting(
      'starting another hub',
      startNext(settings, { folder: gateway.folder, configFile }, control),
    );
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
  };
  return await withGateway(settings, replace, 'hub');
}

/** Starts the successor, unless another process has just done so. */
async function startNext(
  options: GlobalOptions,
  site: { readonly folder: string; readonly configFile: string },
  { number }: HubControl,
) {
  const claim = await claimSuccessor(site.folder, number);
  if (claim !== undefined) hubStarter(options, site)(claim);
  const control = await connectToHub(site.folder);
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
  if (identity === undefined || !found?.words.join(' ').includes(folder)) return false;
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
