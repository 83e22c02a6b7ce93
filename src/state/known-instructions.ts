import { join } from 'node:path';
import { type ConfigLocation, checksumOf, currentFolder, stampOf } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import { withoutRelayed } from '../downstream/declared-capabilities.js';
import type { ClientFacts, GatewayDescription } from '../downstream/port.js';
import { ABOUT, type PendingGateway } from '../gateway/pending-gateway.js';
import { privateFile, readRegularFileSync } from '../host/files/whole-file.js';
import type { EventBus } from '../host/observe/events/events.js';
import { VERSION } from '../version.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';
import { type ClientProfile, profileKey } from '../wire/mcp/handshake.js';
import type { Clock } from '../wire/timing/clock.js';
import { Debounce } from '../wire/timing/debounce.js';
import type { CacheFolder } from './cache-folder.js';
import { trustedTextAround } from './trusted-projects.js';
import { instructionsFolder } from './user-files.js';

/**
 * Describes the gateway to a client that connects before the configuration is read. Uses the instructions and capabilities that
 * the last run has cached for this kind of client, unless the configuration file has changed since.
 */
export function knownDescription(location: ConfigLocation, { profile, view, origin }: ClientFacts): GatewayDescription {
  try {
    const { file: configFile } = location;
    // The texts are kept for clients of the user's servers only, and a project has others.
    if (trustedTextAround(origin?.folder ?? currentFolder()) !== '') return { offered: [], instructions: ABOUT };
    const cached = readInstructions(instructionsFolder(), { configFile, profile, view });
    if (cached !== undefined && cached.stamp === stampOf(configFile))
      return { offered: cached.offered, instructions: cached.text };
  } catch {
    // There is no configuration file or no home folder, which is reported when the configuration is read.
  }
  return { offered: [], instructions: ABOUT };
}

interface KeepInstructionsOptions {
  readonly composition: {
    readonly config: Config;
    readonly platform: { readonly clock: Clock; readonly events: EventBus };
    cachedListsShown(): Promise<void>;
  };
  readonly gateway: PendingGateway;
  readonly client: { readonly isGone: () => boolean };
  readonly folder: CacheFolder;
  /** Aborted at the end of the run, before the servers are stopped. */
  readonly ending: AbortSignal;
}

/** Limit on the declared capabilities, so that one server cannot make the file too large for the instructions. */
const MAX_OFFERED_LENGTH = 32 * 1024;

/** Minimum time between two writes, because each server that becomes ready changes the instructions. */
const KEEP_EVERY_MS = 1_000;

/**
 * Caches the instructions for the next run, a second after a server has become ready, and once more when a client leaves or Trunkline ends.
 */
export function keepInstructions(options: KeepInstructionsOptions): void {
  const { composition, gateway, client, folder, ending } = options;
  const { clock, events } = composition.platform;
  const keep = () => {
    const { file: configFile, stamp } = composition.config;
    if (gateway.newest === undefined || stamp === undefined || client.isGone()) return;
    const { facts, session } = gateway.newest;
    if (composition.config.layers?.projectOf(facts.origin?.folder) !== undefined) return;
    const { instructions: text } = session;
    // The text has no server yet, so the cached one may say more.
    if (text === ABOUT) return;
    const some = session.offered.map(withoutRelayed).filter((capabilities) => Object.keys(capabilities).length > 0);
    const offered = JSON.stringify(some).length > MAX_OFFERED_LENGTH ? [] : some;
    const { profile, view } = facts;
    writeInstructions(folder, { configFile, profile, view }, { text, offered, stamp });
  };
  const debounce = new Debounce({ clock, delayMs: KEEP_EVERY_MS, everyMs: KEEP_EVERY_MS, run: keep });
  // Before the cached lists are shown, this run may know less than the last one.
  void composition.cachedListsShown().then(() => {
    if (ending.aborted) return;
    events.subscribe('server.changed', ({ snapshot }) => {
      if (snapshot.state === 'ready') debounce.request();
    });
    events.subscribe('client.left', keep);
    ending.addEventListener('abort', () => {
      debounce.close();
      keep();
    });
  });
}

export interface InstructionsKey {
  /** Absolute path. */
  readonly configFile: string;
  /** The client. Servers may give different instructions to different kinds of clients. */
  readonly profile: ClientProfile;
  readonly view?: string | undefined;
}

interface CachedInstructions {
  readonly text: string;
  /** The capabilities of each server, apart from those that the gateway declares anyway. */
  readonly offered: readonly Readonly<Record<string, unknown>>[];
  /** Checksum of the text of the configuration file. */
  readonly stamp: number;
}

/** Size limit: four times the largest instructions, because JSON escapes characters and the profile needs space. */
export const MAX_INSTRUCTIONS_FILE_BYTES = 256 * 1024;

/**
 * Reads the cached instructions of an earlier run, from one small file, because a client waits. Returns `undefined` if the
 * file is missing, damaged, from another version, or accessible to other users.
 */
export function readInstructions(folder: string, key: InstructionsKey): CachedInstructions | undefined {
  const facts = factsOf(key);
  const found = readRegularFileSync(join(folder, nameOf(facts)), privateFile(MAX_INSTRUCTIONS_FILE_BYTES));
  if (found.kind !== 'read') return undefined;
  const content = parseJson(new TextDecoder().decode(found.bytes));
  if (!isRecord(content)) return undefined;
  const { text, offered = [], stamp, ...others } = content;
  const areValid = Array.isArray(offered) && offered.every((each) => isRecord(each));
  const isOurs = areValid && JSON.stringify(others) === JSON.stringify(facts);
  return isOurs && typeof text === 'string' && typeof stamp === 'number' ? { text, offered, stamp } : undefined;
}

export function writeInstructions(folder: CacheFolder, key: InstructionsKey, cached: CachedInstructions): void {
  const facts = factsOf(key);
  folder.write(nameOf(facts), Buffer.from(JSON.stringify({ ...facts, ...cached })));
}

interface Facts {
  readonly version: string;
  readonly configFile: string;
  readonly client: string;
}

/** The facts that identify a file. The client's version is left out, so that an updated client finds the file, too. */
function factsOf({ configFile, profile, view }: InstructionsKey): Facts {
  const { clientInfo, ...others } = profile;
  const kind = profileKey({ ...others, clientInfo: { name: clientInfo.name } }, '');
  return { version: VERSION, configFile, client: view === undefined ? kind : `${view} ${kind}` };
}

/** The file name, which consists of checksums. Two keys can have the same name, so `readInstructions` compares the facts, too. */
function nameOf({ configFile, client }: Facts): string {
  return [configFile, client].map((text) => checksumOf(text).toString(16).padStart(8, '0')).join('-');
}
