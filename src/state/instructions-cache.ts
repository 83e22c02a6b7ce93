import { join } from 'node:path';
import { checksumOf } from '../config/file/find-config.js';
import { privateFile, readRegularFileSync } from '../files/regular-file.js';
import { isRecord } from '../json/is-record.js';
import { type ClientProfile, profileKey } from '../mcp/client-profile.js';
import { VERSION } from '../version.js';
import type { CacheFolder } from './cache-folder.js';

/** What instructions are cached for. */
export interface InstructionsKey {
  /** Absolute path. */
  readonly configFile: string;
  /** Servers may say other things to another kind of client. */
  readonly profile: ClientProfile;
  /** The view that the client asks for. */
  readonly view?: string | undefined;
}

export interface CachedInstructions {
  readonly text: string;
  /** The capabilities of each server, apart from those that the gateway declares anyway. */
  readonly offered: readonly Readonly<Record<string, unknown>>[];
  /** The state of the configuration file that they belong to. */
  readonly state: string;
  /** The same for its text, sealed with the secret of this user. */
  readonly seal: number;
}

/** Four times the largest setting: JSON escapes line breaks and quotes, and the profile needs some space. */
export const MAX_INSTRUCTIONS_FILE_BYTES = 256 * 1024;

/**
 * Reads the instructions that an earlier run has cached. A client waits for this, so it reads one small file. Returns
 * `undefined` if there is no such file, or if the file cannot be used: it is damaged, it is from another version, or other
 * users can read or change it.
 */
export function readInstructions(folder: string, key: InstructionsKey): CachedInstructions | undefined {
  const facts = factsOf(key);
  const found = readRegularFileSync(join(folder, nameOf(facts)), privateFile(MAX_INSTRUCTIONS_FILE_BYTES));
  if (found.kind !== 'read') return undefined;
  try {
    const {
      text,
      offered = [],
      state,
      seal,
      ...others
    } = JSON.parse(new TextDecoder().decode(found.bytes)) as Record<string, unknown>;
    const isValid = typeof text === 'string' && typeof state === 'string' && typeof seal === 'number';
    const areValid = Array.isArray(offered) && offered.every((each) => isRecord(each));
    const isOurs = isValid && areValid && JSON.stringify(others) === JSON.stringify(facts);
    return isOurs ? { text, offered, state, seal } : undefined;
  } catch {
    // The file is damaged.
    return undefined;
  }
}

/** Writes them for the next run, unless the file has the same content already. */
export function writeInstructions(folder: CacheFolder, key: InstructionsKey, cached: CachedInstructions): void {
  const facts = factsOf(key);
  const name = nameOf(facts);
  const bytes = Buffer.from(JSON.stringify({ ...facts, ...cached }));
  const before = folder.read(name);
  if (before === undefined || !bytes.equals(before)) folder.write(name, bytes);
}

interface Facts {
  readonly version: string;
  readonly configFile: string;
  /** The kind of client, and its view. */
  readonly client: string;
}

/** The client's version is left out, so that an updated client finds the file, too. */
function factsOf({ configFile, profile, view }: InstructionsKey): Facts {
  const { clientInfo, ...others } = profile;
  const kind = profileKey({ ...others, clientInfo: { name: clientInfo.name } }, '');
  return { version: VERSION, configFile, client: view === undefined ? kind : `${view} ${kind}` };
}

/** One file for each configuration file and kind of client. If two have the same name, the facts tell them apart. */
function nameOf({ configFile, client }: Facts): string {
  return [configFile, client].map((text) => checksumOf(text).toString(16).padStart(8, '0')).join('-');
}
