import { checksumOf, readConfigText, stateOf } from '../config/file/find-config.js';
import { withoutRelayed } from '../downstream/declared-capabilities.js';
import type { ClientFacts, GatewayDescription } from '../downstream/port.js';
import { privateFile, readRegularFileSync } from '../files/regular-file.js';
import { ABOUT } from '../gateway/instructions.js';
import type { PendingGateway } from '../gateway/pending-gateway.js';
import type { CacheFolder } from '../state/cache-folder.js';
import { type CachedInstructions, readInstructions, writeInstructions } from '../state/instructions-cache.js';
import { instructionsFolder, sealFile } from '../state/user-files.js';
import { Debounce } from '../timing/debounce.js';
import type { Composition } from './composition.js';
import type { ConfigPlace } from './config-place.js';

/**
 * What a client learns that connects before the configuration is read: the instructions and the capabilities that such a
 * client would have got at the end of the last run, if the configuration file has not changed since.
 */
export function knownDescription(place: ConfigPlace, { profile, view }: ClientFacts): GatewayDescription {
  try {
    const { file: configFile } = place;
    const cached = readInstructions(instructionsFolder(), { configFile, profile, view });
    if (cached !== undefined && isFor(configFile, cached))
      return { offered: cached.offered, instructions: cached.text };
  } catch {
    // There is no configuration file, or no home folder. What follows the answer reports the reason.
  }
  return { offered: [], instructions: ABOUT };
}

/** Whether the file is the same as in the last run, or was written again with the same text. */
function isFor(configFile: string, { state, seal }: CachedInstructions): boolean {
  if (state === stateOf(configFile)) return true;
  const secret = readRegularFileSync(sealFile(), privateFile(MAX_SEAL_BYTES));
  if (secret.kind !== 'read') return false;
  return seal === sealOf(new TextDecoder().decode(secret.bytes).trim(), checksumOf(readConfigText(configFile)));
}

const MAX_SEAL_BYTES = 4_096;

/** The checksum of a text with secrets, in a form that tells nothing about them to those who do not have the secret. */
function sealOf(secret: string, checksum: number): number {
  return checksumOf(`${secret} ${checksum}`);
}

export interface KeepInstructionsOptions {
  readonly composition: Pick<Composition, 'config' | 'platform' | 'cachedListsShown'>;
  readonly gateway: Pick<PendingGateway, 'newest'>;
  readonly client: { readonly isGone: () => boolean };
  readonly folder: CacheFolder;
  /** The secret of this user. */
  readonly secret: string;
  /** Aborted before the servers are stopped. */
  readonly ending: AbortSignal;
}

/** A server that declares more than all servers together need must not cost the others their instructions. */
const MAX_OFFERED_LENGTH = 32 * 1024;

/** Servers become ready one after the other, and each of them changes the instructions. */
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
    // Nothing is known of any server, which is less than what may be cached.
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
