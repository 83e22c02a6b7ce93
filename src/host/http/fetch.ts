import { type LookupAddress, type LookupOptions, lookup as lookUp } from 'node:dns';
import { isIP } from 'node:net';
import type { Clock } from '../../wire/timing/clock.js';
import { bare, isInside, isLinkLocal, isLoopback, isProtected, isPublicName } from './addresses.js';
import { type AgentOptions, createAgent, proxyOf } from './agents.js';
import { RequestError, sendRequest } from './send-request.js';

export interface FetchOptions extends AgentOptions {
  readonly clock: Clock;
  /**
   * The server on whose behalf the requests are made. A public server must not make Trunkline call private addresses. `undefined`
   * allows no private address, because anybody may have named them.
   */
  readonly server: URL | undefined;
  /** Whether the server itself is asked without encryption, over `http:`. */
  readonly isInsecure?: boolean | undefined;
  /** Headers of every request, unless a redirect leads to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Time limits of one request until its body is read, in ms: longer for POST, because a token that is being renewed must not be lost. */
const GET_MS = 5_000;
const POST_MS = 30_000;
const MAX_BYTES = 64 * 1024;
const MAX_REDIRECTS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * A `fetch` for the documents and tokens of authorization servers, whose addresses come from the network. Reads at most 64 KiB,
 * follows redirects to URLs that may be asked, with a body only within the origin, and refuses unencrypted URLs and addresses that
 * the server may not name. With `redirect: 'manual'`, follows none. Rejects with a `RequestError`.
 */
export function createFetch(options: FetchOptions): (url: string | URL, init?: RequestInit) => Promise<Response> {
  const ask = createSingleFetch(options);
  return async (target, init = {}) => {
    const first = new URL(target);
    let url = first;
    for (let redirects = 0; ; redirects += 1) {
      const isSame = url.origin === first.origin;
      const headers = { ...(isSame && options.headers), ...Object.fromEntries(new Headers(init.headers)) };
      if (!isSame) delete headers.authorization;
      const response = await ask(url, { ...init, headers });
      const location = response.headers.get('location');
      if (!REDIRECTS.has(response.status) || location === null || !URL.canParse(location, url.href)) return response;
      const next = new URL(location, url);
      // A body, which may hold a code or a secret, is sent again to the same origin only.
      const keepsBody = (response.status === 307 || response.status === 308) && next.origin === first.origin;
      const isFollowed = (init.method !== 'POST' || keepsBody) && init.redirect !== 'manual';
      if (!isFollowed || redirects === MAX_REDIRECTS) return response;
      url = next;
    }
  };
}

function createSingleFetch(options: FetchOptions): (url: URL, init: RequestInit) => Promise<Response> {
  return async (url, init) => {
    const refuses = (addresses: string[]) => refusalOfAddresses(addresses, url, options);
    const host = bare(url.hostname);
    // Resolves the name here, too, because a proxy, most often in the same network, may resolve it to a private address.
    const isHidden = options.server === undefined && proxyOf(url, options) !== '';
    const named = isHidden ? () => addressesOf(host) : () => [];
    const refusal = refusalOf(url, options) ?? (await refuses(isIP(host) === 0 ? await named() : [host]));
    if (refusal !== undefined) throw new RequestError(`${url.origin} is not asked, because ${refusal}`, false);
    const method = init.method === 'POST' ? 'POST' : 'GET';
    const agent = createAgent(url, options);
    const form = init.body === undefined || init.body === null ? undefined : Buffer.from(String(init.body));
    const signal = AbortSignal.timeout(method === 'GET' ? GET_MS : POST_MS);
    try {
      const response = await sendRequest(options.clock, {
        url,
        method,
        agent,
        signal,
        headers: { ...Object.fromEntries(new Headers(init.headers)), connection: 'close' },
        ...(form && { body: form }),
        lookup: (host, lookupOptions, found) => lookUpPermitted(host, lookupOptions, refuses, found),
      });
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of response as AsyncIterable<Uint8Array>) {
        length += chunk.length;
        if (length > MAX_BYTES) throw new RequestError(`${url.origin} answers more than ${MAX_BYTES / 1024} KiB`, true);
        chunks.push(chunk);
      }
      const { statusCode: status = 0, headers } = response;
      const fields = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(', ')] as const);
      // Throws if the status allows no body.
      const body = length === 0 ? null : Buffer.concat(chunks);
      return new Response(body, { status, headers: Object.fromEntries(fields) });
    } catch (error) {
      if (!signal.aborted)
        throw error instanceof RequestError
          ? error
          : new RequestError(`the answer of ${url.origin} cannot be read`, true, error);
      const seconds = (method === 'GET' ? GET_MS : POST_MS) / 1_000;
      throw new RequestError(`${url.origin} does not answer within ${seconds} s`, true, error);
    } finally {
      agent.destroy();
    }
  };
}

function refusalOf(url: URL, { server, isInsecure = false }: FetchOptions): string | undefined {
  const isLocal = isLoopback(url.hostname);
  const mayBePlain = isInsecure && url.protocol === 'http:' && url.hostname === server?.hostname;
  if (!isProtected(url) && !mayBePlain) return 'its URL is not encrypted';
  if (isLocal && server === undefined) return 'it is this machine';
  if (server === undefined && !isPublicName(url.hostname)) return 'it has no public name';
  return isLocal && !isLoopback(server?.hostname ?? '') ? 'it is this machine, and the server is not' : undefined;
}

/** Private addresses are asked for servers in private networks only. */
async function refusalOfAddresses(addresses: string[], url: URL, options: FetchOptions): Promise<string | undefined> {
  const { server } = options;
  const linkLocal = addresses.find(isLinkLocal);
  if (linkLocal !== undefined) return `its address ${linkLocal} is link-local`;
  const other = isLoopback(url.hostname) ? addresses.find((address) => !isLoopback(address)) : undefined;
  if (other !== undefined) return `its address ${other} is not on this machine`;
  const inside = addresses.find(isInside);
  if (inside === undefined) return undefined;
  if (server === undefined) return `its address ${inside} is private`;
  if (url.hostname === server.hostname || (await isServerInside(server, options))) return undefined;
  return `its address ${inside} is private, and ${server.hostname} does not prove to be in a private network`;
}

/**
 * Whether a server is on this machine or in a private network. The DNS of a hostile server may say so, so a name counts only
 * if a connection to such an address succeeds, for which `https:` needs the certificate of the server.
 */
async function isServerInside(server: URL, { clock, ...options }: FetchOptions): Promise<boolean> {
  const host = bare(server.hostname);
  if (isLoopback(host)) return true;
  if (isIP(host) !== 0) return isInside(host);
  // Proves nothing through a proxy, because the proxy resolves the name.
  if (proxyOf(server, options) !== '') return false;
  const agent = createAgent(server, options);
  const abort = new AbortController();
  const refuses = async (addresses: string[]) => (addresses.every(isInside) ? undefined : 'it is public');
  try {
    return await new Promise((resolve) => {
      sendRequest(clock, {
        url: new URL(server.origin),
        method: 'GET',
        headers: {},
        agent,
        signal: abort.signal,
        onSent: () => resolve(true),
        lookup: (name, lookupOptions, found) => lookUpPermitted(name, lookupOptions, refuses, found),
      }).catch(() => resolve(false));
    });
  } finally {
    abort.abort();
    agent.destroy();
  }
}

/** The addresses that this machine knows of a name. None behind a proxy that alone can resolve names. */
function addressesOf(host: string): Promise<string[]> {
  return new Promise((resolve) => {
    lookUp(host, { all: true }, (error, found) => resolve(error === null ? found.map(({ address }) => address) : []));
  });
}

type Found = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/** Resolves a name for a connection, which is made only if all its addresses are permitted. */
function lookUpPermitted(
  host: string,
  options: LookupOptions,
  refuses: (addresses: string[]) => Promise<string | undefined>,
  found: Found,
): void {
  lookUp(host, { ...options, all: true }, async (error, addresses) => {
    if (error !== null) {
      found(error, []);
      return;
    }
    const refusal = await refuses(addresses.map(({ address }) => address));
    const [first] = addresses;
    if (refusal !== undefined) found(new Error(`${host} is not asked, because ${refusal}`), []);
    else if (options.all === true || first === undefined) found(null, addresses);
    else found(null, first.address, first.family);
  });
}
