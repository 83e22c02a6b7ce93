import { type LookupAddress, type LookupOptions, lookup as lookUp } from 'node:dns';
import { lookup as resolveAll } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import type { Clock } from '../timing/clock.js';
import { type AgentOptions, createAgent } from './agents.js';
import { RequestError, sendRequest } from './send-request.js';

export interface FetchOptions extends AgentOptions {
  readonly clock: Clock;
  /** The server on whose behalf the requests are made. A public one must not make Trunkline call private addresses. */
  readonly server: URL;
  /** Whether the server itself is asked without encryption, over `http:`. */
  readonly isInsecure?: boolean | undefined;
  /** Headers of every request, unless a redirect leads to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Time limits of one request until its body is read, in milliseconds. A token that is being renewed must not be lost. */
const GET_MS = 5_000;
const POST_MS = 30_000;
const MAX_BYTES = 64 * 1024;
const MAX_REDIRECTS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const LOOPBACK = listOf(['127.0.0.0', 8], ['::1', 128]);
/** Addresses inside of a network. A document of a public server that names one may want to reach a service there. */
const PRIVATE = listOf(
  ...([
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['172.16.0.0', 12],
    ['192.168.0.0', 16],
  ] as const),
  ...([
    ['::', 128],
    ['fc00::', 7],
    ['fec0::', 10],
  ] as const),
);
/** Addresses of one link, such as those of the metadata services of clouds. No authorization server has one. */
const LINK_LOCAL = listOf(['169.254.0.0', 16], ['fe80::', 10], ['fd00:ec2::', 32]);

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
    const mayBePrivate = await isInside(options.server.hostname);
    const refusal = refusalOf(url, options, mayBePrivate);
    if (refusal !== undefined) throw new RequestError(`${url.origin} is not asked, because ${refusal}`, false);
    const method = init.method === 'POST' ? 'POST' : 'GET';
    const agent = createAgent(url, options);
    const form = init.body === undefined || init.body === null ? undefined : Buffer.from(String(init.body));
    const signal = AbortSignal.timeout(method === 'GET' ? GET_MS : POST_MS);
    try {
      const response = await sendRequest(options.clock, {
        ...{ url, method, agent, signal },
        headers: { ...Object.fromEntries(new Headers(init.headers)), connection: 'close' },
        ...(form && { body: form }),
        lookup: (host, lookupOptions, found) => lookUpPermitted(host, lookupOptions, mayBePrivate, found),
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
      // Throws for a status that no answer with a body has.
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

function refusalOf(url: URL, { server, isInsecure = false }: FetchOptions, mayBePrivate: boolean): string | undefined {
  const isLocal = isLoopbackHost(url.hostname);
  const mayBePlain = isLocal || (isInsecure && url.hostname === server.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && mayBePlain)) return 'its URL is not encrypted';
  if (isLocal && !isLoopbackHost(server.hostname)) return 'it is this machine, and the server is not';
  const host = bare(url.hostname);
  return isIP(host) === 0 ? undefined : refusalOfAddress(host, mayBePrivate);
}

function refusalOfAddress(address: string, mayBePrivate: boolean): string | undefined {
  if (LINK_LOCAL.has(address)) return `its address ${address} is link-local`;
  if (mayBePrivate) return undefined;
  return LOOPBACK.has(address) || PRIVATE.has(address) ? `its address ${address} is private` : undefined;
}

/** Whether a server is on this machine or in a private network, where its authorization server may be, too. */
async function isInside(hostname: string): Promise<boolean> {
  const host = bare(hostname);
  if (isLoopbackHost(hostname)) return true;
  if (isIP(host) !== 0) return PRIVATE.has(host);
  // Without an address, a proxy resolves the name.
  const addresses = await resolveAll(host, { all: true }).catch(() => []);
  return addresses.length > 0 && addresses.every(({ address }) => PRIVATE.has(address) || LOOPBACK.has(address));
}

type Found = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

function lookUpPermitted(host: string, options: LookupOptions, mayBePrivate: boolean, found: Found): void {
  lookUp(host, { ...options, all: true }, (error, addresses) => {
    if (error !== null) {
      found(error, []);
      return;
    }
    const refusal = addresses.map(({ address }) => refusalOfAddress(address, mayBePrivate)).find(Boolean);
    const [first] = addresses;
    if (refusal !== undefined) found(new Error(`${host} is not asked, because ${refusal}`), []);
    else if (options.all === true || first === undefined) found(null, addresses);
    else found(null, first.address, first.family);
  });
}

/** Whether a host name of a URL means this machine. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || LOOPBACK.has(bare(host));
}

/** The host of a URL without the brackets of an IPv6 address. */
function bare(host: string): string {
  return host.replace(/^\[|\]$/g, '');
}

function listOf(...subnets: readonly (readonly [string, number])[]) {
  const list = new BlockList();
  for (const [net, bits] of subnets) list.addSubnet(net, bits, net.includes(':') ? 'ipv6' : 'ipv4');
  return {
    /** An IPv4 address that is written as an IPv6 address counts, too. */
    has: (address: string) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'),
  };
}
