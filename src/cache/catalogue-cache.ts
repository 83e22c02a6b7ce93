import { createHash, createHmac } from 'node:crypto';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ServerConfig } from '../config/config.js';
import { CachedCatalogue, type CatalogueContent, serializeCatalogue } from '../gateway/catalog/cached-catalogue.js';
import { type ClientProfile, profileKey } from '../mcp/client-profile.js';
import type { ScanEnvelope } from '../mcp/envelope.js';
import type { ChildSpec } from '../supervision/child-spec.js';
import type { CacheFolder } from './cache-folder.js';

export interface CatalogueCacheOptions {
  readonly folder: CacheFolder;
  /** Of this user; what stands in the configuration never reaches the disk but under it. */
  readonly secret: string;
  /** Called when something was kept that is of use only as long as the secret is. */
  readonly onCached: () => void;
  readonly onIgnored: (name: string, reason: string) => void;
  readonly scan: ScanEnvelope;
}

/** What one server offered one kind of client, from run to run. */
export interface CatalogueCacheEntry {
  find(): CachedCatalogue | undefined;
  keep(words: CatalogueContent): void;
}

/** What the servers offered in the last run, by what decides what they offer. */
export class CatalogueCache {
  readonly #options: CatalogueCacheOptions;
  /** By name, so that nothing is written that stands there already. */
  readonly #hashes = new Map<string, string>();

  constructor(options: CatalogueCacheOptions) {
    this.#options = options;
  }

  of(server: ServerConfig, child: ChildSpec, profile: ClientProfile): CatalogueCacheEntry {
    const name = this.#nameOf(server, child, profile);
    return { find: () => this.#find(name), keep: (words) => this.#keep(name, words) };
  }

  /** Resolves when everything is written, or cannot be. */
  async settled(): Promise<void> {
    await this.#options.folder.settled();
  }

  #find(name: string): CachedCatalogue | undefined {
    const { folder, scan, onIgnored } = this.#options;
    const bytes = folder.read(name);
    if (bytes === undefined) return undefined;
    const kept = CachedCatalogue.read(bytes, scan);
    if (typeof kept === 'string') {
      onIgnored(name, kept);
      return undefined;
    }
    this.#remember(name, hashOf(bytes));
    return kept;
  }

  #keep(name: string, words: CatalogueContent): void {
    const { folder, onCached } = this.#options;
    const bytes = serializeCatalogue(words);
    const hash = hashOf(bytes);
    if (this.#hashes.get(name) === hash) return;
    this.#remember(name, hash);
    onCached();
    folder.write(name, bytes);
  }

  #remember(name: string, hash: string): void {
    this.#hashes.delete(name);
    this.#hashes.set(name, hash);
    for (const oldest of this.#hashes.keys()) {
      if (this.#hashes.size <= MAX_HASHES) return;
      this.#hashes.delete(oldest);
    }
  }

  /**
   * What a server offers is decided by what is run and by what it is told of its client: revision, capabilities and
   * name. The client's version is left out, as one that was updated has to be served at once, too.
   */
  #nameOf(server: ServerConfig, { command, args, cwd, env }: ChildSpec, profile: ClientProfile): string {
    const { protocolVersion, capabilities, clientInfo } = profile;
    const client = { capabilities, clientInfo: { name: clientInfo.name }, ...(protocolVersion && { protocolVersion }) };
    const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1));
    const version = server.package?.found?.version ?? null;
    const what = [command, args, cwd, variables, version, programsOf(command, args, cwd), profileKey(client, '')];
    const fingerprint = createHmac('sha256', this.#options.secret)
      .update(`trunkline catalogue\0${JSON.stringify(what)}`)
      .digest('hex');
    return `${server.key}-${fingerprint.slice(0, FINGERPRINT_LENGTH)}`;
  }
}

const FINGERPRINT_LENGTH = 32;
/** A file that is written once too often does no harm. */
const MAX_HASHES = 1_024;

/** The first argument is what a command runs if it looks like a program; others may be the server's data. */
const PROGRAM = /\.(?:[cm]?[jt]s|py|rb|sh|jar)$/;

/** Which state the program's files are in: a package that was updated may offer something else. */
function programsOf(command: string, args: readonly string[], cwd: string): readonly unknown[] {
  const [first = ''] = args;
  return [command, ...(PROGRAM.test(first) ? [first] : [])].map((file) => stateOf(resolve(cwd, file)));
}

function stateOf(file: string): unknown {
  try {
    const stats = statSync(file);
    return stats.isFile() ? [stats.size, stats.mtimeMs] : null;
  } catch {
    // Found in PATH, or out of reach: there is nothing to tell it by.
    return null;
  }
}

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}
