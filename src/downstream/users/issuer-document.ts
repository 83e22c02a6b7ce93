import { errorMessage } from '../../host/errors/error-text.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Clock } from '../../wire/timing/clock.js';

export interface IssuerDocumentOptions<Content> {
  readonly clock: Clock;
  readonly read: () => Promise<Content>;
  /**
   * Called with the reason when the document cannot be read, and with `undefined` when it can be read again. `isKnown` says
   * whether there is an older one.
   */
  readonly onFault: (fault: string | undefined, isKnown: boolean) => void;
}

/** Age in milliseconds at which a document is read again, so that a key that the issuer has withdrawn loses its effect. */
const MAX_AGE_MS = 10 * 60_000;
/** Shortest time between two readings, in milliseconds, because anybody can send tokens that name unknown keys. */
const COOLDOWN_MS = 30_000;
/** The same while nothing is known. */
const COOLDOWN_AT_FIRST_MS = 2_000;
/** Longest wait for a reading if there is an older document, in milliseconds. */
const PATIENCE_MS = 5_000;

/**
 * A document of an issuer, such as its keys or its metadata. A document that was read once stays known while the issuer is not
 * reachable, so that its outage does not lock out users who have a token.
 */
export class IssuerDocument<Content> {
  readonly #options: IssuerDocumentOptions<Content>;
  #known: Content | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #fault: string | undefined;

  constructor(options: IssuerDocumentOptions<Content>) {
    this.#options = options;
  }

  /** The document as it was read last; `undefined` if it was never reachable. */
  get known(): Content | undefined {
    return this.#known;
  }

  /** The reason for which the last reading failed; `undefined` if it succeeded. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** When the document was read last, in milliseconds on the clock. */
  get readAt(): number {
    return this.#readAt;
  }

  /** Returns the document, and reads it before if it is old. Never rejects. */
  async current(): Promise<Content | undefined> {
    if (this.#options.clock.now() - this.#readAt >= MAX_AGE_MS) await this.refresh();
    return this.#known;
  }

  /** Reads the document, unless that was tried lately. Waits for a reading that is under way. Never rejects. */
  async refresh(): Promise<void> {
    const { clock } = this.#options;
    const cooldown = this.#known === undefined ? COOLDOWN_AT_FIRST_MS : COOLDOWN_MS;
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

  async #read(): Promise<void> {
    const { clock, read, onFault } = this.#options;
    try {
      this.#known = await read();
      this.#readAt = clock.now();
      if (this.#fault !== undefined) onFault(undefined, true);
      this.#fault = undefined;
    } catch (error) {
      const fault = errorMessage(error);
      if (this.#fault === undefined) onFault(fault, this.#known !== undefined);
      this.#fault = fault;
    }
  }
}

export type IssuerMetadata = Readonly<Record<string, unknown>>;

/** Prefers a document that names keys. Rejects with the reason if there is no document at any of the places where it may be. */
export async function readMetadata(issuer: string, fetch: FetchDocument): Promise<IssuerMetadata> {
  let fault: unknown;
  let withoutKeys: IssuerMetadata | undefined;
  for (const url of metadataUrls(issuer)) {
    try {
      const metadata = await readJson(url, fetch);
      // Another issuer could name its own keys here (RFC 8414, section 3.3).
      if (metadata.issuer !== issuer) throw new Error(`${url} is the metadata of another issuer`);
      if (typeof metadata.jwks_uri === 'string') return metadata;
      withoutKeys ??= metadata;
    } catch (error) {
      fault ??= error;
    }
  }
  if (withoutKeys === undefined) throw fault;
  return withoutKeys;
}

export type FetchDocument = (url: string) => Promise<Response>;

export async function readJson(url: string, fetch: FetchDocument): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(url).catch((error: unknown) => {
    throw new Error(`${url}: ${errorMessage(error)}`, { cause: error });
  });
  if (response.status !== 200) throw new Error(`${url} answers HTTP ${response.status}`);
  const value = parseJson(await response.text());
  if (!isRecord(value)) throw new Error(`${url} is no JSON object`);
  return value;
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
