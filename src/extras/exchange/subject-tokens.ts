import { NewestMap } from '../../wire/io/newest-map.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';

interface SubjectTokensOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called when a user has come with another token than before. */
  readonly onNews: (principal: string) => void;
}

const MAX_USERS = 10_000;

/** The latest token with which each user has come, in memory until it ends. All were checked before. */
export class SubjectTokens {
  readonly #options: SubjectTokensOptions;
  /** By principal, the least recently seen first. `endsAt` is in milliseconds since 1970. */
  readonly #tokens = new NewestMap<string, { readonly token: string; readonly endsAt: number }>(MAX_USERS);

  constructor(options: SubjectTokensOptions) {
    this.#options = options;
  }

  note(principal: string, token: string): void {
    const known = this.#tokens.get(principal);
    this.#tokens.set(principal, known?.token === token ? known : { token, endsAt: endOf(token) });
    if (known?.token !== token) this.#options.onNews(principal);
  }

  forget(principal: string): void {
    this.#tokens.delete(principal);
  }

  /** The token of a user; `undefined` if the user has not come with one, or it has ended. */
  of(principal: string): string | undefined {
    const known = this.#tokens.get(principal);
    if (known === undefined || known.endsAt > this.#options.now()) return known?.token;
    this.#tokens.delete(principal);
    return undefined;
  }
}

/** The end of a JWT, in milliseconds since 1970. */
function endOf(token: string): number {
  const claims = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  return isRecord(claims) && typeof claims.exp === 'number' ? claims.exp * 1_000 : 0;
}
