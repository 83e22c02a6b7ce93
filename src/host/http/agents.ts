import { readFileSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { rootCertificates } from 'node:tls';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';

export interface AgentOptions {
  /** URL of a proxy for all hosts. Without it, `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` decide. */
  readonly proxy?: string | undefined;
  /** Certificates in PEM of authorities that are trusted besides those of Node and of `NODE_EXTRA_CA_CERTS`. */
  readonly ca?: string | undefined;
}

/**
 * Idle connections are closed after this time, in milliseconds. Most servers close theirs after 5 s or more, and a request
 * on a connection that the server closes at that moment is lost.
 */
const IDLE_MS = 4_000;

/** Makes the agent that keeps the connections to the origin of `url`. Close it with `destroy`. */
export function createAgent(url: URL, { proxy, ca }: AgentOptions): HttpAgent {
  const options = {
    keepAlive: true,
    timeout: IDLE_MS,
    ...(ca !== undefined && { ca: [...rootCertificates, ...extraCertificates(), ca] }),
  };
  const via = proxyOf(url, { proxy });
  // Uses a tunnel (CONNECT) in any case, so that a proxy sees no header of the request.
  if (via !== '') {
    const agent = new HttpsProxyAgent(via, options);
    // Sets the options again, because the library uses them, with the certificates, for the connection to the proxy only.
    Object.assign(agent.options, options);
    return agent;
  }
  return url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
}

/** Returns the URL of the proxy of requests to `url`; '' if there is none. */
export function proxyOf(url: URL, { proxy }: AgentOptions): string {
  return proxy ?? getProxyForUrl(url.href);
}

/** Reads the certificates of `NODE_EXTRA_CA_CERTS`, because a list of authorities replaces those that Node has read from there. */
function extraCertificates(): string[] {
  const file = process.env.NODE_EXTRA_CA_CERTS;
  if (file === undefined || file === '') return [];
  try {
    return [readFileSync(file, 'utf8')];
  } catch {
    // Node warns about a file that it cannot read, and goes on without it, too.
    return [];
  }
}
