import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { errorMessage } from '../../host/errors/error-text.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Clock } from '../../wire/timing/clock.js';

interface IssuerKeysOptions {
  readonly issuer: string;
  /** The URL of the keys. Absent if the metadata of the issuer names it. */
  readonly jwksUri?: string | undefined;
  readonly clock: Clock;
  readonly fetch: (url: string) => Promise<Response>;
  /**
   * Called with the reason when the keys cannot be read, and with `undefined` when they can be read again. `areKnown` says
   * whether there are older keys.
   */
  readonly onFault: (fault: string | undefined, areKnown: boolean) => void;
}

/** Age in milliseconds at which the keys are read again, so that a key that the issuer has withdrawn loses its effect. */
const MAX_AGE_MS = 10 * 60_000;
/** Shortest time between two readings, in milliseconds, because anybody can send tokens that name unknown keys. */
const COOLDOWN_MS = 30_000;
/** The same while no keys are known. */
const COOLDOWN_WITHOUT_KEYS_MS = 2_000;
/** Longest wait for a reading if there are older keys, in milliseconds. */
const PATIENCE_MS = 5_000;

/** Thrown while no keys are known, because the issuer was never reachable. */
export class KeysMissing extends Error {
  override readonly name = 'KeysMissing';
}

/**
 * The keys with which an issuer signs its tokens. Keys that were read once stay valid while the issuer is not reachable,
 * so that its outage locks nobody out who has a token.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #known: ReturnType<typeof createLocalJWKSet> | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /** Finds the key of a signature. Throws `KeysMissing`, or an error of `jose` if the issuer has no such key. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const before = this.#readAt;
    if (this.#options.clock.now() - before >= MAX_AGE_MS) await this.refresh();
    try {
      return await this.#keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || this.#readAt !== before) throw error;
      await this.refresh();
      return await this.#keys(header, token);
    }
  };

  /** Reads the keys, unless that was tried lately. Waits for a reading that is under way. Never rejects. */
  async refresh(): Promise<void> {
    const { clock } = this.#options;
    const cooldown = this.#known === undefined ? COOLDOWN_WITHOUT_KEYS_MS : COOLDOWN_MS;
    if (this.#reading === undefined) {
      if (clock.now() - this.#triedAt < cooldown) return;
      this.#triedAt = clock.now();
      this.#reading = this.#read().finally(() => {
        this.#reading = undefined;
      });
    }
    if (this.#known === undefined) await this.#reading;
    else await withPatience(this.#reading, clock);
  }

  #keys(...signature: Parameters<JWTVerifyGetKey>): Promise<CryptoKey> {
    if (this.#known === undefined) throw new KeysMissing();
    return this.#known(...signature) as Promise<CryptoKey>;
  }

  async #read(): Promise<void> {
    const { clock, onFault } = this.#options;
    try {
      const set = await this.#json(await this.#urlOfKeys());
      this.#known = createLocalJWKSet(set as unknown as JSONWebKeySet);
      this.#readAt = clock.now();
      if (this.#hasFailed) onFault(undefined, true);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) onFault(errorMessage(error), this.#known !== undefined);
      this.#hasFailed = true;
    }
  }

  async #urlOfKeys(): Promise<string> {
    const { issuer, jwksUri } = this.#options;
    if (jwksUri !== undefined) return jwksUri;
    let fault: unknown;
    for (const url of metadataUrls(issuer)) {
      try {
        const metadata = await this.#json(url);
        // Another issuer could name its own keys here (RFC 8414, section 3.3).
        if (metadata.issuer !== issuer) throw new Error(`${url} is the metadata of another issuer`);
        if (typeof metadata.jwks_uri !== 'string') throw new Error(`${url} names no \`jwks_uri\``);
        return metadata.jwks_uri;
      } catch (error) {
        fault ??= error;
      }
    }
    throw fault;
  }

  async #json(url: string): Promise<Readonly<Record<string, unknown>>> {
    const response = await this.#options.fetch(url).catch((error: unknown) => {
      throw new Error(`${url}: ${errorMessage(error)}`, { cause: error });
    });
    if (response.status !== 200) throw new Error(`${url} answers HTTP ${response.status}`);
    const value = parseJson(await response.text());
    if (!isRecord(value)) throw new Error(`${url} is no JSON object`);
    return value;
  }
}

/** The URLs at which an issuer may have its metadata, as on the page about authorization of MCP's revision 2026-07-28. */
function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const urls = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  return [...new Set(urls)];
}

/** Resolves when the work has ended, or after `PATIENCE_MS`. */
async function withPatience(work: Promise<void>, clock: Clock): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.schedule(PATIENCE_MS, resolve);
    void work.then(() => {
      cancel();
      resolve();
    });
  });
}
