import type { Caller } from './http-client.js';
import type { HttpRefusal } from './http-refusal.js';

/** The sender of a request, or the refusal of the request. */
export type CallerOrRefusal = Caller | { readonly refusal: HttpRefusal };

export interface CallerCheck {
  /**
   * Finds the caller by the header `Authorization`. `address` is that of the connection, `now` a time in milliseconds on
   * the clock, and `endpoint` that of the request, in the form for `HttpSessionPort.openSession`.
   */
  admit(
    authorization: string | undefined,
    address: string,
    now: number,
    endpoint: string | undefined,
  ): CallerOrRefusal | Promise<CallerOrRefusal>;
}

/** The users of the gateway, who have tokens of their own. */
export interface HttpUsers extends CallerCheck {
  /**
   * Returns the metadata of an endpoint as a protected resource (RFC 9728). Without `path`, that of all endpoints.
   * `undefined` if users cannot log in, because only machines have tokens.
   */
  metadata(path: string | undefined): Readonly<Record<string, unknown>> | undefined;
}

/** The path at which clients find the metadata of a protected resource. The path of the resource follows. */
export const METADATA_PATH = '/.well-known/oauth-protected-resource';

/** The token in a header `Authorization`; `undefined` if there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([!-~]+) *$/i.exec(authorization ?? '')?.[1];
}
