import { join } from 'node:path';
import { type ConfigLocation, checksumOf, readConfigText, stateOf } from '../config/file/find-config.js';
import type { Config } from '../config/resolve/config.js';
import { withoutRelayed } from '../downstream/declared-capabilities.js';
import type { ClientFacts, GatewayDescription } from '../downstream/port.js';
import { ABOUT, type PendingGateway } from '../gateway/pending-gateway.js';
import { privateFile, readRegularFileSync } from '../host/files/whole-file.js';
import type { EventBus } from '../host/observe/events/events.js';
import { VERSION } from '../version.js';
import { isRecord } from '../wire/json/json-value.js';
import { type ClientProfile, profileKey } from '../wire/mcp/handshake.js';
import type { Clock } from '../wire/timing/clock.js';
import { Debounce } from '../wire/timing/debounce.js';
import type { CacheFolder } from './cache-folder.js';
import { instructionsFolder, sealFile } from './user-files.js';

/**
 * Describes the gateway to a client that connects before the configuration is read: with the instructions and capabilities
 * that the last run has cached for this kind of client, unless the configuration file has changed since.
 */
export function knownDescription(location: ConfigLocation, { profile, view }: ClientFacts): GatewayDescription {
  try {
    const { file: configFile } = location;
    const cached = readInstructions(instructionsFolder(), { configFile, profile, view });
    if (cached !== undefined && isFor(configFile, cached))
      return { offered: cached.offered, instructions: cached.text };
  } catch {
    // There is no configuration file or no home folder, which is reported when the configuration is read.
  }
  return { offered: [], instructions: ABOUT };
}

/** Whether the file has the same text as in the last run. The text is read only if the file was written since. */
function isFor(configFile: string, { state, seal }: CachedInstructions): boolean {
  if (state === stateOf(configFile)) return true;
  const secret = readRegularFileSync(sealFile(), privateFile(MAX_SEAL_BYTES));
  if (secret.kind !== 'read') return false;
  return seal === sealOf(new TextDecoder().decode(secret.bytes).trim(), checksumOf(readConfigText(configFile)));
}

const MAX_SEAL_BYTES = 4_096;

/** Seals a checksum, so that without the secret it reveals nothing of the text. */
function sealOf(secret: string, checksum: number): number {
  return checksumOf(`${secret} ${checksum}`);
}

interface KeepInstructionsOptions {
  readonly composition: {
    readonly config: Config;
    readonly platform: { readonly clock: Clock; readonly events: EventBus };
    cachedListsShown(): Promise<void>;
  };
  readonly gateway: Pick<PendingGateway, 'newest'>;
  readonly client: { readonly isGone: () => boolean };
  readonly folder: CacheFolder;
  /** The secret of this user. */
  readonly secret: string;
  /** Aborted at the end of the run, before the servers are stopped. */
  readonly ending: AbortSignal;
}

/** Limit on the declared capabilities, so that one server cannot make the file too large for the instructions. */
const MAX_OFFERED_LENGTH = 32 * 1024;

/** Minimum time between two writes, because each server that becomes ready changes the instructions. */
const KEEP_EVERY_MS = 1_000;

/**
 * Caches the instructions for the next run: some time after a server has become ready, and once more before the client's
 * session or Trunkline ends.
 */
export function keepInstructions(options: KeepInstructionsOptions): void {
  const { composition, gateway, client, folder, secret, ending } = options;
  const { clock, events } = composition.platform;
  const keep = () => {
    const { file: configFile, stamp } = composition.config;
    if (gateway.newest === undefined || stamp === undefined || client.isGone()) return;
    const { facts, session } = gateway.newest;
    const { instructions: text } = session;
    // The text has no server yet, so the cached one may say more.
    if (text === ABOUT) return;
    const some = session.offered.map(withoutRelayed).filter((capabilities) => Object.keys(capabilities).length > 0);
    const offered = JSON.stringify(some).length > MAX_OFFERED_LENGTH ? [] : some;
    const cached = { text, offered, state: stamp.state, seal: sealOf(secret, stamp.checksum) };
    writeInstructions(folder, { configFile, profile: facts.profile, view: facts.view }, cached);
  };
  const debounce = new Debounce({ clock, delayMs: KEEP_EVERY_MS, everyMs: KEEP_EVERY_MS, run: keep });
  // Before that, less may be known than in the last run.
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

/** The key of cached instructions. */
export interface InstructionsKey {
  /** Absolute path. */
  readonly configFile: string;
  /** The client. Servers may give different instructions to different kinds of clients. */
  readonly profile: ClientProfile;
  /** The view that the client asks for. */
  readonly view?: string | undefined;
}

interface CachedInstructions {
  readonly text: string;
  /** The capabilities of each server, apart from those that the gateway declares anyway. */
  readonly offered: readonly Readonly<Record<string, unknown>>[];
  /** `stateOf` the configuration file. */
  readonly state: string;
  /** Checksum of the configuration text, sealed with the secret of this user. */
  readonly seal: number;
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
  try {
    const content: Record<string, unknown> = JSON.parse(new TextDecoder().decode(found.bytes));
    const { text, offered = [], state, seal, ...others } = content;
    const isValid = typeof text === 'string' && typeof state === 'string' && typeof seal === 'number';
    const areValid = Array.isArray(offered) && offered.every((each) => isRecord(each));
    const isOurs = isValid && areValid && JSON.stringify(others) === JSON.stringify(facts);
    return isOurs ? { text, offered, state, seal } : undefined;
  } catch {
    // The file is damaged.
    return undefined;
  }
}

/** Caches instructions for the next run. */
export function writeInstructions(folder: CacheFolder, key: InstructionsKey, cached: CachedInstructions): void {
  const facts = factsOf(key);
  folder.write(nameOf(facts), Buffer.from(JSON.stringify({ ...facts, ...cached })));
}

interface Facts {
  readonly version: string;
  readonly configFile: string;
  /** The kind of client, and its view. */
  readonly client: string;
}

/** The facts that identify a file. The client's version is left out, so that an updated client finds the file, too. */
function factsOf({ configFile, profile, view }: InstructionsKey): Facts {
  const { clientInfo, ...others } = profile;
  const kind = profileKey({ ...others, clientInfo: { name: clientInfo.name } }, '');
  return { version: VERSION, configFile, client: view === undefined ? kind : `${view} ${kind}` };
}

/** The file name. Files with the same name, which is possible because it has checksums, are distinguished by their facts. */
function nameOf({ configFile, client }: Facts): string {
  return [configFile, client].map((text) => checksumOf(text).toString(16).padStart(8, '0')).join('-');
}
