import { existsSync } from 'node:fs';
import { logLines } from '../../host/files/log-lines.js';
import { removeFile } from '../../host/files/whole-file.js';
import { MAX_LOG_FILES } from '../../host/observe/log-file.js';
import { toText } from '../../host/observe/log-line.js';
import type { ClientDescription, HubDescription } from '../../hub/control.js';
import { hubFiles, hubNumbers, latestHub } from '../../hub/hub-folder.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { plural } from '../../wire/json/printable.js';
import { type Finding, finding, RECENT_MS } from './finding.js';

export interface ExaminedHub {
  /** Absent if no hub has ever run, or if TRUNKLINE_HUB is `off`. */
  readonly folder: string | undefined;
  /** Reasons why no hub can run, as phrases. */
  readonly faults: readonly string[];
  readonly state:
    | {
        readonly kind: 'running';
        readonly hub: { readonly pid: number; readonly version: string; readonly clients: HubDescription['clients'] };
      }
    /** Its process may still run, with its servers. */
    | { readonly kind: 'silent'; readonly pid: number | undefined }
    | { readonly kind: 'refused' }
    | { readonly kind: 'not running' };
  readonly isAlive: (number: number) => Promise<boolean>;
}

/** Whether a hub can run, runs, and is of this version, and whether killed ones have left their sockets. */
export async function checkHub(
  facts: ExaminedHub,
  version: string,
  platform: string = process.platform,
): Promise<Finding[]> {
  const { folder, faults } = facts;
  if (folder !== undefined) return [...checkRunning(facts, version, platform), ...(await checkStale(folder, facts))];
  return faults.length === 0 ? [] : [finding('TL-HUB-FOLDER', `no hub can run: ${faults.join(', and ')}`)];
}

function checkRunning({ state }: ExaminedHub, version: string, platform: string): Finding[] {
  switch (state.kind) {
    case 'running': {
      const { pid, clients, version: ofHub } = state.hub;
      const text = `hub ${pid} serves ${plural(clients.length, 'client')}`;
      const evidence = [...clients.map(describeClient), ...(platform === 'darwin' ? [ACCESS_ON_MAC] : [])];
      const others = clients.filter(({ trunkline = ofHub }) => trunkline !== ofHub);
      if (ofHub !== version)
        return [finding('TL-HUB-VERSION', `${text} with version ${ofHub}; this is ${version}`, evidence)];
      if (others.length === 0) return [finding('TL-HUB-OK', text, evidence)];
      const differing = `${plural(others.length, 'client')} of hub ${pid} started another version than ${version}`;
      return [finding('TL-HUB-CLIENT-VERSION', differing, others.map(describeClient))];
    }
    case 'silent':
      return [finding('TL-HUB-SILENT', `the hub${state.pid === undefined ? '' : ` ${state.pid}`} does not answer`)];
    case 'refused':
      return [finding('TL-HUB-VERSION', 'the hub does not take commands of this version')];
    case 'not running':
      return [];
  }
}

/**
 * macOS asks once for each program whether it may read folders such as Documents. It counts a process to the program that has started it.
 * Claude Desktop, however, starts servers so that they count as programs of their own, for which macOS does not ask.
 */
const ACCESS_ON_MAC =
  'its servers may read the folders and reach the local network that the program may that has started it; Claude Desktop gives its own access to none, so run `trunkline hub restart` in a terminal that has the access';

function describeClient({ name, pid, revision, trunkline }: ClientDescription): string {
  const opened = revision ? `opened with revision ${revision}` : 'has not opened a session yet';
  const through = trunkline === undefined ? '' : `, through Trunkline ${trunkline}`;
  return `${name ?? 'a client'} (pid ${pid}) ${opened}${through}`;
}

async function checkStale(folder: string, { state, isAlive }: ExaminedHub): Promise<Finding[]> {
  // Windows removes the pipe of a process that has ended.
  const left = hubNumbers(folder).filter((number) => {
    const { socket, ended } = hubFiles(folder, number);
    // A hub that was stopped leaves its socket, too, and the file `ended`.
    return existsSync(socket) && !existsSync(ended);
  });
  const isLatestAlive = state.kind !== 'not running';
  const stale: number[] = [];
  for (const number of left) {
    const isUsed = number === latestHub(folder) ? isLatestAlive : await isAlive(number);
    if (!isUsed) stale.push(number);
  }
  if (stale.length === 0) return [];
  const sockets = stale.map((number) => hubFiles(folder, number).socket);
  // The folder stays, so that the numbers of hubs keep growing, and no new hub has the number of an old one.
  const apply = async () => {
    for (const socket of sockets) await removeFile(socket);
  };
  const repair = { done: `removed ${plural(sockets.length, 'socket')} of hubs that have ended`, apply };
  return [finding('TL-HUB-STALE', 'a hub was killed and has left its socket', sockets, { repair })];
}

const WARNING = 40;
const ERROR = 50;
const MAX_SHOWN = 5;

/** Members of a warning that say why something has failed. Other warnings are notices, for example of a tool that waits for approval. */
const SIGNS_OF_FAULT = ['err', 'reason', 'cause', 'fault', 'trouble'];

/** Reports failures of the last day, from the log of the hub. */
export async function checkRecentFaults(logFile: string, now: number): Promise<Finding[]> {
  const faults: string[] = [];
  for await (const line of logLines({ file: logFile, maxFiles: MAX_LOG_FILES, isFollowed: false })) {
    const record = parseJson(line);
    if (!isRecord(record) || typeof record.level !== 'number' || record.level < WARNING) continue;
    if (record.level < ERROR && !SIGNS_OF_FAULT.some((sign) => sign in record)) continue;
    const at = typeof record.time === 'number' ? record.time : Date.parse(String(record.time));
    if (now - at <= RECENT_MS) faults.push(toText(record).split('\n')[0] ?? '');
  }
  if (faults.length === 0) return [];
  const text = `the log of the hub has ${plural(faults.length, 'fault')} of the last 24 hours`;
  return [finding('TL-RECENT-FAULTS', text, faults.slice(-MAX_SHOWN))];
}
