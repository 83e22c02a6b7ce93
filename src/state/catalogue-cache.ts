import { createHash } from 'node:crypto';
import type { ServerConfig } from '../config/resolve/config.js';
import { CachedCatalogue, type CatalogueContent, serializeCatalogue } from '../gateway/catalog/cached-catalogue.js';
import { type ClientProfile, profileKey } from '../mcp/client-profile.js';
import type { ScanEnvelope } from '../mcp/envelope.js';
import type { ChildSpec } from '../supervision/launcher.js';
import type { EraVerdicts } from '../upstream/server-era.js';
import type { CacheFolder } from './cache-folder.js';
import { cachedVerdicts } from './era-verdicts.js';
import { fileNameOf, programOf } from './server-fingerprint.js';

export interface CatalogueCacheOptions {
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
  /** Hash of each file's content by name; an unchanged catalogue is not written again. */
  readonly #hashes = new Map<string, string>();

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

  /** Which era the server speaks, whatever client it has. `complete` adds what was installed since. */
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
    if (MISSED.equals(bytes)) {
      this.#remember(name, hashOf(bytes));
      return 'missed';
    }
    const catalogue = CachedCatalogue.read(bytes, scan);
    if (typeof catalogue === 'string') {
      onIgnored(name, catalogue);
      return undefined;
    }
    this.#remember(name, hashOf(bytes));
    return catalogue;
  }

  #put(name: string, serialize: () => Uint8Array): void {
    const { folder, onCached } = this.#options;
    folder.write(name, () => {
      const bytes = serialize();
      const hash = hashOf(bytes);
      if (this.#hashes.get(name) === hash) return undefined;
      this.#remember(name, hash);
      onCached();
      return bytes;
    });
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

/** When a hash is forgotten, its file may be written once without need. */
const MAX_HASHES = 1_024;

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}
