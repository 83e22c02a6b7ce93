import type { IncomingMessage } from 'node:http';
import {
  refuseHttpVersion,
  refuseRepeatedHeader,
  refuseTransferEncoding,
} from '../../downstream/http/header-guards.js';
import { LOOPBACK_NAMES } from '../../host/http/addresses.js';

/** Answer that refuses a request. The message is a sentence for the user, without text of the request. */
export interface GuardRefusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type Request = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders' | 'httpVersion'>;

/** Headers of every answer. There are no CORS headers, so no other origin can read an answer. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/**
 * Refuses requests that another site caused in the browser of the user, before anything else is known about them. `port` is the
 * port of this server. Files of the page contain nothing secret, so programs other than browsers get them without `Origin`, and a
 * local file of the user may open the document.
 */
export function refuseForeign(
  request: Request,
  port: number,
  isFile: boolean,
  isFromFile: boolean,
): GuardRefusal | undefined {
  const { headers, rawHeaders, httpVersion } = request;
  return (
    refuseHttpVersion(httpVersion) ??
    refuseRepeatedHeader(headers, rawHeaders) ??
    refuseTransferEncoding(headers['transfer-encoding'], httpVersion) ??
    refuseHost(headers.host, port) ??
    refuseOrigin(request, isFile, isFromFile)
  );
}

/** Refuses other names, because a site that points its own name at 127.0.0.1 (DNS rebinding) sends that name. */
function refuseHost(host: string | undefined, port: number): GuardRefusal | undefined {
  // `URL` leaves out the port 80, as browsers do.
  if (LOOPBACK_NAMES.some((name) => host === new URL(`http://${name}:${port}`).host)) return undefined;
  const message = `The header Host must be 127.0.0.1:${port} or localhost:${port}. For another machine, forward the port with \`ssh -L ${port}:127.0.0.1:${port}\`.`;
  return { status: 403, message };
}

/** Browsers send `Origin` with every request but a GET of the same origin, and `Sec-Fetch-Site` with every request. */
function refuseOrigin(
  { method, url, headers }: Request,
  isFile: boolean,
  isFromFile: boolean,
): GuardRefusal | undefined {
  const { host, origin, 'sec-fetch-site': site } = headers;
  const isGet = method === 'GET';
  // A navigation to an address that was typed, pasted, or opened by a program.
  const isNavigation = isGet && (isFromFile || (url === '/' && site === 'none'));
  const isOwn = site === undefined || site === 'same-origin' || isNavigation;
  const isNamed = origin === undefined ? isGet && (isFile || site !== undefined) : origin === `http://${host}`;
  if (isOwn && isNamed && method !== 'OPTIONS') return undefined;
  const message = isGet && url === '/' ? 'Paste the address into the browser: links on other sites' : 'Other sites';
  return { status: 403, message: `${message} may not open this page.` };
}
