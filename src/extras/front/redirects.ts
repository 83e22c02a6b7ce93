import { DEFAULT_REDIRECTS } from '../../config/schema/settings.js';
import { isLoopback } from '../../host/http/addresses.js';
import { printable } from '../../wire/json/printable.js';

/** Longest redirect URI, in characters. */
const MAX_LENGTH = 1_024;

/** Where a login may return to. Everything that is not allowed is refused. */
export class Redirects {
  readonly #rules: ReadonlySet<string>;

  constructor(rules: readonly string[] = DEFAULT_REDIRECTS) {
    this.#rules = new Set(rules);
  }

  /** Returns the reason for which a login may not return to this URI, as a sentence with its name; `undefined` if it may. */
  refuse(uri: string): string | undefined {
    // A browser reads an address with other characters in a way of its own.
    if (uri.length > MAX_LENGTH || !/^[!-~]+$/.test(uri) || /[\\"<>^`{|}]/.test(uri) || !URL.canParse(uri))
      return 'The redirect URI is no address';
    const shown = printable(uri.length > 200 ? `${uri.slice(0, 200)}…` : uri);
    const { protocol, hostname, username, password } = new URL(uri);
    if (uri.includes('#') || username !== '' || password !== '')
      return `The redirect URI ${shown} has a fragment or a password`;
    const isAllowed = protocol === 'http:' ? isLoopback(hostname) && this.#rules.has('loopback') : this.#rules.has(uri);
    return isAllowed ? undefined : `The redirect URI ${shown} is not among those that this gateway allows`;
  }
}

/**
 * Returns the form in which redirect URIs are compared. Leaves out the port of a URI on the machine of the person, because a program
 * there listens on any port (RFC 8252, section 7.3). Every other URI is compared as it is.
 */
export function comparable(uri: string): string {
  if (!URL.canParse(uri)) return uri;
  const url = new URL(uri);
  if (url.protocol !== 'http:' || !isLoopback(url.hostname)) return uri;
  return `http://${url.hostname}${url.pathname}${url.search}`;
}

/** The host of a redirect URI; for the URI of an app, its scheme. */
export function hostOf(uri: string): string {
  const { protocol, hostname } = new URL(uri);
  return protocol === 'http:' || protocol === 'https:' ? hostname : protocol;
}

/** The part of a redirect URI that says where it leads, for a person. An app has several doors, which its authority tells apart. */
export function placeOf(uri: string): string {
  const { protocol, host } = new URL(uri);
  return protocol === 'http:' || protocol === 'https:' ? hostOf(uri) : `${protocol}//${host}`;
}

/** Whether a program on the machine of the person gets the answer, which cannot prove its name. */
export function isOnMachine(uri: string): boolean {
  return new URL(uri).protocol !== 'https:';
}

/** The address that answers a client. The redirect URI stays as it is, because some programs compare it. */
export function answerTo(uri: string, params: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, value);
  return `${uri}${uri.includes('?') ? '&' : '?'}${query}`;
}
