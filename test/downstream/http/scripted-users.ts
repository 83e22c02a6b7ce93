import type { CallerOrRefusal, HttpUsers } from '../../../src/downstream/http/caller.js';
import type { Caller } from '../../../src/downstream/http/http-client.js';
import type { User } from '../../../src/downstream/port.js';

/** The users of the tests. Their tokens are their names, with any text after a dash. */
export class ScriptedUsers implements HttpUsers {
  /** Groups by the names of users. */
  readonly groups = new Map<string, readonly string[]>([
    ['ann', ['eng']],
    ['bob', ['ops']],
    ['ci', []],
  ]);
  /** The endpoints of the requests whose tokens were checked. */
  readonly endpoints: (string | undefined)[] = [];
  /** When the tokens of users end, in milliseconds on the clock. */
  tokenEndsAt: number | undefined;
  /** Set to answer later, as a real check does. */
  pause: Promise<void> | undefined;

  admit(
    authorization: string | undefined,
    _address: string,
    _now: number,
    endpoint?: string,
  ): CallerOrRefusal | Promise<CallerOrRefusal> {
    this.endpoints.push(endpoint);
    const admission = this.#callerOf(authorization);
    return this.pause === undefined ? admission : this.pause.then(() => admission);
  }

  metadata(path: string | undefined) {
    return { resource: `https://mcp.example.com${path ?? ''}` };
  }

  #callerOf(authorization: string | undefined): CallerOrRefusal {
    const name = /^Bearer (\w+)/.exec(authorization ?? '')?.[1] ?? '';
    const groups = this.groups.get(name);
    if (groups === undefined)
      return { refusal: { status: 401, message: 'no', headers: { 'www-authenticate': 'Bearer x' } } };
    const user: User = { principal: `principal of ${name}`, name, kind: name === 'ci' ? 'machine' : 'user', groups };
    const { tokenEndsAt } = this;
    return { principal: user.principal, user, ...(tokenEndsAt !== undefined && { tokenEndsAt }) } satisfies Caller;
  }
}

/** The header of a user. A `more` makes another token of the same user. */
export function tokenOf(name: string, more = ''): { readonly authorization: string } {
  return { authorization: `Bearer ${name}${more === '' ? '' : `-${more}`}` };
}
