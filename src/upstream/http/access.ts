/** Headers that identify the gateway to a remote server, such as `Authorization`, by lower-case names. */
export type AccessHeaders = Readonly<Record<string, string>>;

/** Reason for which requests to a server cannot be authorized now. Only a person, or the server, can change it. */
export interface Blocked {
  /**
   * - `login_required`: no request is accepted.
   * - `scope_missing`: this request needs more scopes than the login has.
   * - `refused`: this request is not accepted, and another login does not help.
   */
  readonly blocked: 'login_required' | 'scope_missing' | 'refused';
  /** Reason as a clause, without a period or a secret. */
  readonly because: string;
}

/** The answer with which a server refused the headers of a request. */
export interface Challenge {
  readonly status: 401 | 403;
  /** The values of `WWW-Authenticate`. */
  readonly authenticate: readonly string[];
  /** The value of `DPoP-Nonce`. */
  readonly nonce?: string | undefined;
  /** The words of its body for people. */
  readonly words?: string | undefined;
}

/** The request that needs headers, because some headers are bound to it, such as a DPoP proof. */
export interface AccessRequest {
  readonly method: string;
  readonly url: URL;
  /** The other headers of the request, and its body. Absent after the request was refused. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | undefined;
}

/**
 * Authorizes the requests to one remote server. Connections with the same login share one access; any other connection has its
 * own. Rejects with a `RequestError` if the headers come from the network, and cannot be had at the moment.
 */
export interface RemoteAccess {
  headers(request: AccessRequest): Promise<AccessHeaders | Blocked>;
  /** The server refused the headers `used`. Resolves with `again` if other headers may be accepted. */
  rejected(challenge: Challenge, used: AccessHeaders, request: AccessRequest): Promise<'again' | Blocked>;
}

/** The access of one connection. `release` ends its use. */
export interface OpenedAccess {
  readonly access: RemoteAccess;
  readonly release: () => unknown;
}

/** The words of a refusal, as the end of a clause. */
export function asClause(words: string | undefined): string {
  return words === undefined ? '' : `: ${words}`;
}

export function isBlocked(access: AccessHeaders | Blocked | 'again'): access is Blocked {
  return typeof access === 'object' && typeof (access as Partial<Blocked>).blocked === 'string' && 'because' in access;
}

/** Thrown when a request cannot be authorized. It was not processed. */
export class BlockedError extends Error {
  override readonly name = 'BlockedError';

  readonly blocked: Blocked['blocked'];

  constructor({ blocked, because }: Blocked) {
    super(because);
    this.blocked = blocked;
  }
}
