import { createHmac } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CatalogueContent } from '../gateway/registry/backend.js';
import { readRegularFileSync, realPath } from '../host/files/whole-file.js';
import type { ServerSpec } from '../spec/server-spec.js';
import type { EraVerdicts } from '../upstream/server-era.js';
import type { ListSource } from '../upstream/upstream-connection.js';
import { isRecord, parseJson } from '../wire/json/json-value.js';
import type { ScanEnvelope } from '../wire/mcp/envelope.js';
import { type ClientProfile, profileKey } from '../wire/mcp/handshake.js';
import type { Clock } from '../wire/timing/clock.js';
import { CacheFolder } from './cache-folder.js';
import { readCatalogue, serializeCatalogue } from './catalogue-file.js';
import { catalogueFolder } from './user-files.js';

interface CatalogueCacheOptions extends CatalogueReading {
  readonly folder: CacheFolder;
}

interface CatalogueReading {
  /** Secret of this user. File names contain an HMAC under this secret instead of values of the configuration. */
  readonly secret: string;
  /** Called when a file is written, to store the secret, because without it no file is found. */
  readonly onCached: () => void;
  readonly onIgnored: (name: string, reason: string) => void;
  readonly scan: ScanEnvelope;
}

export interface CatalogueServer {
  readonly key: string;
  /** Absolute path of the configuration file that has the server. */
  readonly configFile: string;
  /** The exact version of its package. Absent if the server runs no package, or if the package is not installed. */
  readonly version?: string | undefined;
}

export interface CatalogueCacheEntry {
  /** `missed` if no catalogue is cached because the start of the last run failed or took long. */
  find(): ListSource | 'missed' | undefined;
  /** The catalogue that a command has read from the same program. The server may have another one for this client. */
  findForAll(): ListSource | undefined;
  put(content: CatalogueContent): void;
  /** Records a start that failed or takes long, in place of a cached catalogue. */
  putMissed(): void;
}

/** Caches the catalogues of the servers on disk, so that the next run lists their tools before the servers are ready. */
export class CatalogueCache {
  readonly #options: CatalogueCacheOptions;

  constructor(options: CatalogueCacheOptions) {
    this.#options = options;
  }

  /** Returns the cached catalogue of the program of a server, for clients with this profile. */
  of(server: CatalogueServer, child: ServerSpec, profile: ClientProfile): CatalogueCacheEntry {
    const name = this.#nameOf(server, child, profile);
    return {
      find: () => this.#find(name),
      findForAll: () => {
        const found = this.#find(this.#nameForAll(server, child));
        return found === 'missed' ? undefined : found;
      },
      put: ({ initializeResult, lists }) => {
        // Copied, because the lists of the next process enter the same map.
        const content = { initializeResult, lists: new Map(lists) };
        this.#put(name, () => serializeCatalogue(content));
      },
      putMissed: () => this.#put(name, () => MISSED),
    };
  }

  /**
   * The cache for a command, which starts servers to see whether they work. It finds nothing. It stores each catalogue for clients
   * that have the profile of the command, and as a substitute (`findForAll`) for all others.
   */
  forCommand(): CatalogueStore {
    return {
      of: (server, child, profile) => ({
        find: () => undefined,
        findForAll: () => undefined,
        put: (content) => {
          this.of(server, child, profile).put(content);
          this.#put(this.#nameForAll(server, child), () => serializeCatalogue(content));
        },
        putMissed: () => {},
      }),
      eraOf: (...which) => {
        const verdicts = this.eraOf(...which);
        return { find: () => undefined, put: (found) => verdicts.put(found), forget: () => verdicts.forget() };
      },
      settled: () => this.settled(),
    };
  }

  /** The cached era of a server, for all clients. The functions return the server as it is when a file is read or written. */
  eraOf(server: () => CatalogueServer, child: () => ServerSpec): EraVerdicts {
    const { folder, secret, onCached } = this.#options;
    const name = () => fileNameOf(server(), 'era', programOf(server(), child()), secret);
    return cachedVerdicts({ folder, onCached, name });
  }

  /** Resolves when all writes have ended. Never rejects. */
  async settled(): Promise<void> {
    await this.#options.folder.settled();
  }

  #find(name: string): ListSource | 'missed' | undefined {
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
   * Name of the file of a catalogue: a hash of the program of the server and of the client's revision, capabilities, name and
   * user, because catalogues may depend on them. It leaves out the client's version, so an updated client finds the catalogue.
   */
  #nameOf(server: CatalogueServer, child: ServerSpec, profile: ClientProfile): string {
    const { protocolVersion, capabilities, clientInfo, principal = '' } = profile;
    const client = { capabilities, clientInfo: { name: clientInfo.name }, ...(protocolVersion && { protocolVersion }) };
    const what = [...programOf(server, child), profileKey(client, principal)];
    const { secret } = this.#options;
    const ofUser = principal === '' ? '' : userMark(principal, secret);
    return `${fileNameOf(server, 'catalogue', what, secret)}${ofUser}`;
  }

  #nameForAll(server: CatalogueServer, child: ServerSpec): string {
    return fileNameOf(server, 'catalogue', [...programOf(server, child), 'all clients'], this.#options.secret);
  }
}

/** Size limit of a catalogue, the same as that of a list. */
const MAX_CATALOGUE_BYTES = 4 * 1024 * 1024;
/** Number of cached catalogues: enough for ten clients with 25 servers each. */
const MAX_CATALOGUES = 256;

interface OpenCataloguesOptions extends CatalogueReading {
  /** Called for the first failed write. */
  readonly onFault: (error: unknown) => void;
  /** Clock that delays writes, because a starting client needs the processor first. Without it, they begin at once. */
  readonly clock?: Clock;
}

export function openCatalogues({ clock, onFault, ...rest }: OpenCataloguesOptions): CatalogueCache {
  const limits = { maxFileBytes: MAX_CATALOGUE_BYTES, maxFiles: MAX_CATALOGUES };
  const { onIgnored } = rest;
  const folder = new CacheFolder({ ...limits, folder: catalogueFolder(), onIgnored, onFault, ...(clock && { clock }) });
  return new CatalogueCache({ ...rest, folder });
}

export interface CatalogueStore {
  readonly of: CatalogueCache['of'];
  readonly eraOf: CatalogueCache['eraOf'];
  readonly settled: CatalogueCache['settled'];
}

const MISSED = Buffer.from('{"missed":true}\n');

/** Identifies the program of a server and its version. */
function programOf(server: CatalogueServer, child: ServerSpec): readonly unknown[] {
  if (child.kind === 'remote')
    return [child.url, child.transport, Object.entries(child.headers).sort(), child.headersCommand];
  const { command, args, cwd, env, missing } = child;
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
  // If a package is not installed yet, the arguments do not name its program.
  const version = missing === undefined ? (server.version ?? null) : [missing.name, missing.version];
  return [command, args, cwd, variables, version, filesOf(command, args, cwd)];
}

/** The name of a cache file of a server. It contains an HMAC of `what`, which may have secrets. */
function fileNameOf(
  { key, configFile }: CatalogueServer,
  kind: 'catalogue' | 'era',
  what: unknown,
  secret: string,
): string {
  const fingerprint = hmacOf(`trunkline ${kind}\0${JSON.stringify(what)}`, secret).slice(0, FINGERPRINT_LENGTH);
  return `${key}-${configurationMark(configFile, secret)}${fingerprint}${kind === 'era' ? '-era' : ''}`;
}

/** The part of the names of cache files that all servers of a configuration share. */
export function configurationMark(configFile: string, secret: string): string {
  return hmacOf(`trunkline configuration\0${realPath(configFile) ?? configFile}`, secret).slice(0, 8);
}

/** The end of the names of all catalogues of a user. */
function userMark(principal: string, secret: string): string {
  return `-${hmacOf(`trunkline user\0${principal}`, secret).slice(0, FINGERPRINT_LENGTH)}`;
}

/** Removes the catalogues of a user from their folder. Returns their number. */
export function removeCatalogues(folder: string, principal: string, secret: string): number {
  const mark = userMark(principal, secret);
  const own = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(mark)) : [];
  for (const name of own) rmSync(join(folder, name), { force: true });
  return own.length;
}

function hmacOf(text: string, secret: string): string {
  return createHmac('sha256', secret).update(text).digest('hex');
}

const FINGERPRINT_LENGTH = 24;

/** Extensions of programs. A first argument with another extension may be data of the server. */
const PROGRAM = /\.(?:[cm]?[jt]s|py|rb|sh|jar)$/;

/** Size and time of the program's files, because an updated program may have another catalogue. */
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
  readonly folder: { read(name: string): Uint8Array | undefined; write(name: string, bytes: Uint8Array): void };
  readonly name: () => string;
  /** Called when a file is written, to store the secret, because without it no file is found. */
  readonly onCached: () => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * Time for which the verdict `legacy` is valid, in milliseconds. It is limited, because an updated server that speaks both eras
 * still answers `initialize`, so nothing else would show the update.
 */
const LEGACY_LASTS_MS = 24 * 60 * 60 * 1_000;

/** Caches the era of a server on disk, so that the next run does not ask the server. */
export function cachedVerdicts({ folder, name, onCached, now = Date.now }: CachedVerdictsOptions): EraVerdicts {
  return {
    find: () => {
      const bytes = folder.read(name());
      const found = bytes === undefined ? undefined : parseJson(Buffer.from(bytes).toString());
      if (!isRecord(found)) return undefined;
      const { era, version, at } = found;
      if (era !== 'legacy' && era !== 'modern') return undefined;
      const age = typeof at === 'number' ? now() - at : Number.NaN;
      // After the system clock was set back, the age is negative, and the verdict is not valid.
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
 * Names of the tools in the newest readable catalogue that is cached for a server, for whichever client; `undefined` if there is
 * none. `mark` (`configurationMark`) limits the search to one configuration.
 */
export function cachedToolNames(folder: string, key: string, mark = ''): readonly string[] | undefined {
  const newestFirst = catalogueFilesOf(folder, key, mark).sort((a, b) => b.modifiedAt - a.modifiedAt);
  const texts = newestFirst.map(({ file }) => {
    const found = readRegularFileSync(file, { maxBytes: MAX_BYTES });
    return found.kind === 'read' ? new TextDecoder().decode(found.bytes) : undefined;
  });
  const text = texts.find((each) => each !== undefined && each !== MISSED.toString());
  if (text === undefined) return undefined;
  const tools = text.split('\n').flatMap((line) => toolsIn(parseJson(line)));
  return tools.flatMap((tool) => (isRecord(tool) && typeof tool.name === 'string' ? [tool.name] : []));
}

function catalogueFilesOf(
  folder: string,
  key: string,
  mark: string,
): { readonly file: string; readonly modifiedAt: number }[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.startsWith(`${key}-${mark}`) && FINGERPRINT.test(name.slice(key.length)))
      .map((name) => join(folder, name))
      .map((file) => ({ file, modifiedAt: statSync(file).mtimeMs }));
  } catch {
    // The folder does not exist, or a file was removed meanwhile.
    return [];
  }
}

/** The tools in a line of the file, if the line is an answer to `tools/list`. */
function toolsIn(line: unknown): readonly unknown[] {
  const result = isRecord(line) ? line.result : undefined;
  return isRecord(result) && Array.isArray(result.tools) ? result.tools : [];
}
