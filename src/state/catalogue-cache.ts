import { createHmac } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { ServerConfig } from '../config/resolve/config.js';
import { readRegularFileSync } from '../files/whole-file.js';
import {
  type CachedCatalogue,
  type CatalogueContent,
  readCatalogue,
  serializeCatalogue,
} from '../gateway/catalog/cached-catalogue.js';
import { isRecord, parseJson } from '../json/json-value.js';
import type { ScanEnvelope } from '../mcp/envelope.js';
import { type ClientProfile, profileKey } from '../mcp/handshake.js';
import type { ChildSpec } from '../supervision/launcher.js';
import type { EraVerdicts } from '../upstream/server-era.js';
import type { CacheFolder } from './cache-folder.js';

interface CatalogueCacheOptions {
  readonly folder: CacheFolder;
  /** Secret of this user. Values of the configuration reach the disk only as an HMAC under it. */
  readonly secret: string;
  /** Called when a file is written: it is found only as long as the secret exists. */
  readonly onCached: () => void;
  readonly onIgnored: (name: string, reason: string) => void;
  readonly scan: ScanEnvelope;
}

/** The cached catalogue of one server for one client profile. */
export interface CatalogueCacheEntry {
  /** `missed` if there is no catalogue, and the start failed in the last run, or took long. */
  find(): CachedCatalogue | 'missed' | undefined;
  put(content: CatalogueContent): void;
  /** Records that the start failed, or takes long. Replaces a cached catalogue. */
  putMissed(): void;
}

/** Caches the catalogues of the servers on disk, so that the next run lists their tools before the servers are ready. */
export class CatalogueCache {
  readonly #options: CatalogueCacheOptions;

  constructor(options: CatalogueCacheOptions) {
    this.#options = options;
  }

  of(server: ServerConfig, child: ChildSpec, profile: ClientProfile): CatalogueCacheEntry {
    const name = this.#nameOf(server, child, profile);
    return {
      find: () => this.#find(name),
      put: ({ initializeResult, lists }) => {
        // The map goes on with the lists of the next process.
        const content = { initializeResult, lists: new Map(lists) };
        this.#put(name, () => serializeCatalogue(content));
      },
      putMissed: () => this.#put(name, () => MISSED),
    };
  }

  /** Era of the server, the same for all clients. `complete` adds packages that were installed since. */
  eraOf(server: ServerConfig, complete: (child: ChildSpec) => ChildSpec): EraVerdicts | undefined {
    const { child } = server;
    const { folder, secret, onCached } = this.#options;
    if (child === undefined) return undefined;
    const name = () => fileNameOf(server, 'era', programOf(server, complete(child)), secret);
    return cachedVerdicts({ folder, onCached, name });
  }

  /** Resolves when all writes have ended. Never rejects. */
  async settled(): Promise<void> {
    await this.#options.folder.settled();
  }

  #find(name: string): CachedCatalogue | 'missed' | undefined {
    const { folder, scan, onIgnored } = this.#options;
    const bytes = folder.read(name);
    if (bytes === undefined) return undefined;
    if (MISSED.equals(bytes)) return 'missed';
    const catalogue = readCatalogue(bytes, scan);
    if (typeof catalogue !== 'string') return catalogue;
    onIgnored(name, catalogue);
    return undefined;
  }

  #put(name: string, serialize: () => Uint8Array): void {
    const { folder, onCached } = this.#options;
    folder.write(name, () => {
      onCached();
      return serialize();
    });
  }

  /**
   * The catalogue of a server depends on the program that runs and on what the server learns about its client: revision,
   * capabilities and name. The client's version is left out, so that an updated client finds the cached catalogue too.
   */
  #nameOf(server: ServerConfig, child: ChildSpec, profile: ClientProfile): string {
    const { protocolVersion, capabilities, clientInfo } = profile;
    const client = { capabilities, clientInfo: { name: clientInfo.name }, ...(protocolVersion && { protocolVersion }) };
    const what = [...programOf(server, child), profileKey(client, '')];
    return fileNameOf(server, 'catalogue', what, this.#options.secret);
  }
}

/** The file of a server without a catalogue. */
const MISSED = Buffer.from('{"missed":true}\n');

/** Identifies the program of a server and its version. */
function programOf(server: ServerConfig, { command, args, cwd, env, missing }: ChildSpec): readonly unknown[] {
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  // The program of a package that is not installed yet is not among the arguments.
  const version = missing === undefined ? (server.package?.found?.version ?? null) : [missing.name, missing.version];
  return [command, args, cwd, variables, version, filesOf(command, args, cwd)];
}

/**
 * The name of the file that caches something about a server. Values of the configuration reach the disk only as an HMAC
 * under the secret.
 */
function fileNameOf({ key }: ServerConfig, kind: 'catalogue' | 'era', what: unknown, secret: string): string {
  const fingerprint = createHmac('sha256', secret)
    .update(`trunkline ${kind}\0${JSON.stringify(what)}`)
    .digest('hex');
  return `${key}-${fingerprint.slice(0, FINGERPRINT_LENGTH)}${kind === 'era' ? '-era' : ''}`;
}

const FINGERPRINT_LENGTH = 32;

/** The first argument counts as a program when it has such an extension; other arguments may be data of the server. */
const PROGRAM = /\.(?:[cm]?[jt]s|py|rb|sh|jar)$/;

/** Size and time of the program's files: an updated program may have another catalogue. */
function filesOf(command: string, args: readonly string[], cwd: string): readonly unknown[] {
  const [first = ''] = args;
  return [command, ...(PROGRAM.test(first) ? [first] : [])].map((file) => stateOf(resolve(cwd, file)));
}

function stateOf(file: string): unknown {
  try {
    const stats = statSync(file);
    return stats.isFile() ? [stats.size, stats.mtimeMs] : null;
  } catch {
    // The command is looked up in PATH, or the file cannot be read.
    return null;
  }
}

interface CachedVerdictsOptions {
  readonly folder: Pick<CacheFolder, 'read'> & { write(name: string, bytes: Uint8Array): void };
  /** The name of the file. */
  readonly name: () => string;
  /** Called when a file is written: it is found only as long as the secret exists. */
  readonly onCached: () => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * A wrong verdict `legacy` is never noticed, because a server that speaks both eras goes on to answer `initialize`. So it
 * counts for a day.
 */
const LEGACY_LASTS_MS = 24 * 60 * 60 * 1_000;

/** Caches on disk which era a server speaks, so that the next run does not ask. */
export function cachedVerdicts({ folder, name, onCached, now = Date.now }: CachedVerdictsOptions): EraVerdicts {
  return {
    find: () => {
      const bytes = folder.read(name());
      const found = bytes === undefined ? undefined : parseJson(Buffer.from(bytes).toString());
      if (!isRecord(found)) return undefined;
      const { era, version, at } = found;
      if (era !== 'legacy' && era !== 'modern') return undefined;
      const age = typeof at === 'number' ? now() - at : Number.NaN;
      // A clock that was set back proves nothing either.
      if (era === 'legacy' && !(age >= 0 && age < LEGACY_LASTS_MS)) return undefined;
      const until = era === 'legacy' ? new Date(now() + LEGACY_LASTS_MS - age).toISOString() : undefined;
      return { era, version: typeof version === 'string' ? version : undefined, until };
    },
    put: ({ era, version }) => {
      onCached();
      folder.write(name(), Buffer.from(`${JSON.stringify({ era, version, at: now() })}\n`));
    },
    forget: () => folder.write(name(), FORGOTTEN),
  };
}

const FORGOTTEN = Buffer.from('{}\n');

const FINGERPRINT = /^-[0-9a-f]{32}$/;
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Names of the tools that a server with this key listed last, as far as a catalogue is cached. Neither the configuration
 * nor the client of that run is checked, so the names are good for suggestions only.
 */
export function cachedToolNames(folder: string, key: string): readonly string[] {
  const [newest] = catalogueFilesOf(folder, key).sort((a, b) => b.modifiedAt - a.modifiedAt);
  if (newest === undefined) return [];
  const found = readRegularFileSync(newest.file, { maxBytes: MAX_BYTES });
  const text = found.kind === 'read' ? new TextDecoder().decode(found.bytes) : '';
  const tools = text.split('\n').flatMap((line) => toolsIn(parseJson(line)));
  return tools.flatMap((tool) => (isRecord(tool) && typeof tool.name === 'string' ? [tool.name] : []));
}

function catalogueFilesOf(folder: string, key: string): { readonly file: string; readonly modifiedAt: number }[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith(key) && FINGERPRINT.test(name.slice(key.length)))
      .map((name) => join(folder, name))
      .map((file) => ({ file, modifiedAt: statSync(file).mtimeMs }));
  } catch {
    // The cache is empty, or a file was removed just now.
    return [];
  }
}

/** The answers of a server are lines of the file. */
function toolsIn(line: unknown): readonly unknown[] {
  const result = isRecord(line) ? line.result : undefined;
  return isRecord(result) && Array.isArray(result.tools) ? result.tools : [];
}
