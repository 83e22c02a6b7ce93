import type { IncomingHttpHeaders } from 'node:http';

/** A path besides those of MCP, which a feature serves without a token. */
export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'OPTIONS';
  /** May have parameters, such as `/login/:server`. */
  readonly path: string;
  /** Called for requests whose `Host` is allowed. */
  readonly serve: (request: RouteRequest) => RouteAnswer | Promise<RouteAnswer>;
}

export interface RouteRequest {
  /** The parameters of the path, without escapes. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The whole body, of at most `MAX_ROUTE_BODY_BYTES`. Empty without one. */
  readonly body: string;
  /** The address of the client, or that of a proxy in front of Trunkline. */
  readonly address: string;
}

export interface RouteAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

/** Largest body of a request to such a path. Codes and refresh tokens of identity providers have a few kilobytes. */
export const MAX_ROUTE_BODY_BYTES = 32 * 1024;

export type Params = Readonly<Record<string, string | undefined>>;

/** The parameters; `undefined` if one stands there twice, because two programs could read different values (RFC 6749, section 3.1). */
export function singleParams(params: URLSearchParams): Params | undefined {
  const names = [...params.keys()];
  return new Set(names).size === names.length ? Object.fromEntries(params) : undefined;
}
