import type { FrontConfig } from '../../config/file/check-file.js';
import { errorMessage } from '../../host/errors/error-text.js';
import { NewestMap } from '../../wire/io/newest-map.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { printable } from '../../wire/json/printable.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { SealedTexts } from '../sealed-texts.js';
import { ShortMemory } from '../short-memory.js';
import { comparable, hostOf, type Redirects } from './redirects.js';

export interface FrontClient {
  /** The name that the program gave itself, safe to show. */
  readonly name: string;
  /** Places to which its logins may return. */
  readonly redirectUris: readonly string[];
  /** The URL of the document with the metadata of the client, whose host proves who wrote them. Everybody knows it. */
  readonly document?: string;
}

/** Thrown for a client that is not served. The message is a sentence for a person. */
export class ClientRefused extends Error {
  override readonly name = 'ClientRefused';
}

interface ClientsOptions {
  readonly config: FrontConfig;
  readonly redirects: Redirects;
  readonly sealed: SealedTexts;
  readonly clock: Clock;
  /** Reads a document of a client, whose address anybody may have chosen. */
  readonly fetchDocument: (url: string) => Promise<Response>;
  /** Whether another document of this host may be read now. */
  readonly mayFetch: (host: string) => boolean;
  /** Called with the reason for which a document cannot be used. It is not for strangers, because it tells of this network. */
  readonly onFault: (url: string, fault: string) => void;
}

const MAX_URIS = 16;
/** Longest sum of all redirect URIs of a client. They are part of its id, which is part of addresses. */
const MAX_URIS_LENGTH = 2_048;
const MAX_NAME_LENGTH = 64;
const MAX_ID_LENGTH = 512;
const MAX_DOCUMENTS = 256;
const USUAL_AGE_MS = 5 * 60_000;
const MAX_AGE_MS = 60 * 60_000;
/** Time after which a document is not used any more, whatever prevents that it is read again. */
const MAX_STALE_MS = 24 * 60 * 60_000;
/** Time for which a document that cannot be used is not asked for again. */
const FAILED_MS = 30_000;

const UNKNOWN = 'This gateway does not know the program that began the login. Remove the login there, and begin again.';

/**
 * The clients of the front. The id of a client has its name and its redirect URIs, sealed, so that gateways with the same key
 * share nothing else. The id of another client is the URL of a document that has them (OAuth client id metadata document).
 */
export class Clients {
  readonly #options: ClientsOptions;
  /** Documents by URL, the least recently used first. Times are in milliseconds on the clock. */
  readonly #documents = new NewestMap<string, ReadDocument>(MAX_DOCUMENTS);
  /** The URLs of documents that cannot be used. There are few, because few are read in this time. */
  readonly #failed: ShortMemory;

  constructor(options: ClientsOptions) {
    this.#options = options;
    this.#failed = new ShortMemory(options.clock);
  }

  /**
   * Registers a client (RFC 7591). Leaves out redirect URIs that are not allowed, because some clients name several that they may
   * use. Throws `ClientRefused` if none is left.
   */
  register(metadata: unknown): Readonly<Record<string, unknown>> {
    const { redirects, sealed } = this.#options;
    const client = clientIn(metadata);
    const faults = client.redirectUris.map((uri) => redirects.refuse(uri));
    const redirectUris = client.redirectUris.filter((_, index) => faults[index] === undefined);
    if (redirectUris.length === 0) throw new ClientRefused(`${faults[0] ?? 'The client names no redirect URI'}.`);
    return {
      client_id: sealed.seal('client', { name: client.name, redirectUris }),
      client_id_issued_at: Math.floor(Date.now() / 1_000),
      client_name: client.name,
      redirect_uris: redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }

  /** Finds a client by its id. Rejects with `ClientRefused`. */
  async find(id: string): Promise<FrontClient> {
    if (id.startsWith('https://')) return await this.#published(id);
    const found = this.#options.sealed.open<FrontClient>('client', id);
    if (found === undefined) throw new ClientRefused(UNKNOWN);
    return found;
  }

  /** Whether the id is one that this gateway could serve, without reading a document. */
  isKnown(id: string): boolean {
    return isDocumentUrl(id) || this.#options.sealed.open('client', id) !== undefined;
  }

  /** Returns the reason for which a login of the client may not return to this URI; `undefined` if it may. */
  refuseRedirect({ redirectUris }: FrontClient, uri: string): string | undefined {
    const fault = this.#options.redirects.refuse(uri);
    if (fault !== undefined) return `${fault}.`;
    const isRegistered = redirectUris.some((each) => comparable(each) === comparable(uri));
    return isRegistered ? undefined : `The program has not registered the redirect URI ${printable(uri)}.`;
  }

  /**
   * The id with which the client logs in at the identity provider. It must be the same at a login and at each renewal, which names no
   * redirect URI. A client cannot choose it by a redirect URI that it does not use, because all of them must have the same id.
   */
  idAtProvider({ redirectUris }: FrontClient): string {
    const { config, redirects } = this.#options;
    const { clientId, clientIds = {} } = config;
    const hosts = redirectUris.filter((uri) => redirects.refuse(uri) === undefined).map(hostOf);
    const [id = clientId, ...others] = new Set(
      hosts.map((host) => (Object.hasOwn(clientIds, host) ? clientIds[host] : clientId)),
    );
    return others.length === 0 ? id : clientId;
  }

  async #published(url: string): Promise<FrontClient> {
    const { clock, fetchDocument, mayFetch, onFault } = this.#options;
    if (!isDocumentUrl(url)) throw new ClientRefused(UNKNOWN);
    const known = this.#documents.get(url);
    if (known !== undefined) this.#documents.set(url, known);
    if (known !== undefined && known.until > clock.now()) return known.client;
    // Neither a stranger who has other documents read, nor a host that is away, must log the clients out that are known.
    const stale = known !== undefined && known.readAt + MAX_STALE_MS > clock.now() ? known.client : undefined;
    if (this.#failed.has(url)) return stale ?? refused(unusable(url));
    if (!mayFetch(new URL(url).hostname))
      return stale ?? refused('This gateway is reading about too many programs. Try again in a minute.');
    try {
      const response = await fetchDocument(url);
      if (response.status !== 200) throw new Error(`it answers HTTP ${response.status}`);
      const document = parseJson(await response.text());
      // Otherwise, anybody could publish a document about the client of another.
      if (!isRecord(document) || document.client_id !== url) throw new Error('it is no document about this client');
      const client = { ...clientIn(document), document: url };
      const readAt = clock.now();
      this.#documents.set(url, { client, readAt, until: readAt + ageOf(response) });
      return client;
    } catch (error) {
      this.#failed.add(url, FAILED_MS);
      onFault(url, errorMessage(error));
      return stale ?? refused(unusable(url));
    }
  }
}

interface ReadDocument {
  readonly client: FrontClient;
  readonly readAt: number;
  /** The end of the time for which it is used without being read again. */
  readonly until: number;
}

function refused(sentence: string): never {
  throw new ClientRefused(sentence);
}

function unusable(url: string): string {
  return `The document ${url} about the program cannot be used. The log of the gateway says why. Try again in a minute.`;
}

/** The client in the metadata that it sends or publishes. Throws `ClientRefused`. */
function clientIn(metadata: unknown): FrontClient {
  const { client_name: name, redirect_uris: uris } = isRecord(metadata) ? metadata : {};
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string'))
    throw new ClientRefused('The client names no list `redirect_uris`.');
  if (uris.length > MAX_URIS || uris.join('').length > MAX_URIS_LENGTH)
    throw new ClientRefused(`The client names more than ${MAX_URIS} redirect URIs, or too long ones.`);
  const shown = typeof name === 'string' ? printable(name.slice(0, MAX_NAME_LENGTH)).trim() : '';
  return { name: shown === '' ? 'A program without a name' : shown, redirectUris: uris };
}

/** Whether the text is a URL in the one form that a client id may have: with a path, and nothing that could be written otherwise. */
function isDocumentUrl(id: string): boolean {
  if (id.length > MAX_ID_LENGTH || !id.startsWith('https://') || !URL.canParse(id)) return false;
  const { href, pathname, hash, username, password } = new URL(id);
  return href === id && pathname !== '/' && `${hash}${username}${password}` === '' && !id.includes('#');
}

/** The time in milliseconds for which a document may be used again. */
function ageOf({ headers }: Response): number {
  const control = headers.get('cache-control') ?? '';
  if (/no-store|no-cache/i.test(control)) return 0;
  const [, seconds] = /max-age=(\d{1,9})/i.exec(control) ?? [];
  return seconds === undefined ? USUAL_AGE_MS : Math.min(Number(seconds) * 1_000, MAX_AGE_MS);
}
