import { readFileSync } from 'node:fs';
import { errorMessage } from '../errors/error-text.js';
import { UsageError } from '../errors/usage-error.js';
import { type HubControl, type NoControl, openControl } from '../hub/attach/control-client.js';
import { hubLog } from '../hub/attach/start-hub.js';
import type { Claim } from '../hub/claim.js';
import { allHubFolders, hubFiles, hubNumbers, latestHub } from '../hub/place.js';
import { userHubsFolder } from '../state/user-files.js';
import { VERSION } from '../version.js';
import { folderOfHub, hubStarter } from './attach.js';
import { ConfigPlace } from './config-place.js';
import type { GlobalOptions } from './global-options.js';

/** Where the hub of a configuration is, whether it runs or not. */
export interface HubSite {
  readonly configFile: string;
  readonly folder: string;
  /** The log of a hub that was not told another file. */
  readonly logFile: string;
}

/** Finds the place of the hub. Throws a `ConfigError` without a configuration file, a `UsageError` without a folder. */
export function findHubSite(options: GlobalOptions): HubSite {
  const configFile = new ConfigPlace(options).file;
  try {
    const folder = folderOfHub(configFile);
    return { configFile, folder, logFile: options.logFile ?? hubLog(folder) };
  } catch (cause) {
    const hint = 'name a folder that only you can enter in the variable TRUNKLINE_HUB_DIR';
    throw new UsageError(`no hub can run: ${errorMessage(cause)}`, hint, { cause });
  }
}

/** The folders of all hubs of this user. */
export function allHubs(): string[] {
  return allHubFolders(userHubsFolder());
}

/** Connects to the hub that clients find, or to an earlier one. Starts none. */
export async function reachHub(folder: string, number?: number): Promise<HubControl | NoControl> {
  return await openControl(folder, VERSION, number);
}

/** The numbers of the hubs before the one that clients find. Most of them have ended. */
export function earlierHubs(folder: string): number[] {
  const latest = latestHub(folder);
  return hubNumbers(folder).filter((number) => number !== latest);
}

/** The process that was started as the hub with this number, which clients find if there is none. */
export function notedPid(folder: string, number = latestHub(folder)): number | undefined {
  try {
    return Number(readFileSync(hubFiles(folder, number).pid, 'latin1')) || undefined;
  } catch {
    return undefined;
  }
}

/** Returns what starts the process of a hub with this configuration. */
export function starterFor(options: GlobalOptions, { configFile, folder }: HubSite): (claim: Claim) => void {
  return hubStarter(options, { configFile, folder });
}
