import type { LoginSettings, RemoteSpec } from '../../spec/server-spec.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import { isBlocked, type OpenedAccess } from '../http/access.js';
import { configuredAccess } from '../http/configured-access.js';
import { OAuthAccess, type OAuthAccessOptions } from './oauth-access.js';
import { loginIdOf, type Vault } from './vault.js';

export interface SharedLoginsOptions extends Pick<OAuthAccessOptions, 'clock' | 'keepSecret' | 'onRenewed'> {
  readonly vault: Vault;
  readonly clock: Clock;
  /** Called after a login or logout at a server, in this or another process, with the principal if the login is of a user. */
  readonly onChange: (server: string, user: string | undefined) => void;
}

/** Time for which a call waits for the login of its user, in milliseconds. The page of the login is valid for the same time. */
const LOGIN_MS = 10 * 60_000;

/** Opens one access for all connections with the same login. Watches the logins, because other processes change them, too. */
export class SharedLogins {
  readonly #options: SharedLoginsOptions;
  /** Accesses with a login, by the names of the logins. */
  readonly #accesses = new Map<string, { readonly access: OAuthAccess; readonly settings: string }>();
  /** Logins that wait for the person, by the names of the logins. */
  readonly #pending = new Map<string, Promise<{ readonly url: string; readonly finished: Promise<void> }>>();
  /** Calls that wait for the login of a user, by the names of the logins. */
  readonly #awaited = new Map<string, Set<() => void>>();
  #unfollow: Cancel = () => {};
  #isClosed = false;

  constructor(options: SharedLoginsOptions) {
    this.#options = options;
  }

  /** Opens the access of one connection to a server. Call `release` when the connection ends. */
  open(spec: RemoteSpec): OpenedAccess {
    const { login } = spec;
    if (login === undefined) {
      const access = configuredAccess(spec, this.#options);
      return { access, release: () => access.end() };
    }
    const access = this.#shared({ ...spec, login });
    return { access, release: access.use() };
  }

  /** `onOver` is called once when the token is replaced or ends. The returned `release` ends the use. */
  async takeToken(
    spec: RemoteSpec & { readonly login: LoginSettings },
    onOver: () => void,
  ): Promise<{ readonly token: string; readonly release: () => void } | { readonly because: string }> {
    const access = this.#shared(spec);
    const release = access.use();
    const headers = await access.headers({ method: 'GET', url: new URL(spec.url) }).catch((error: unknown) => {
      release();
      throw error;
    });
    const [, token] = isBlocked(headers) ? [] : (/^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []);
    const { tokenOver } = access;
    if (token !== undefined && tokenOver === undefined) {
      const unfollow = access.onceOver(token, onOver);
      const releaseAll = () => {
        unfollow();
        release();
      };
      return { token, release: releaseAll };
    }
    release();
    if (isBlocked(headers)) return { because: headers.because };
    // A process with it would be replaced at once, again and again.
    if (tokenOver !== undefined) return { because: tokenOver };
    return {
      because: access.isLoggedIn ? 'its token is bound to a key, which no process has' : 'there is no login for it',
    };
  }

  /** Begins a login at a server, or returns the login that already waits for the person. Rejects if it cannot begin. */
  begin(spec: RemoteSpec): Promise<{ readonly url: string; readonly finished: Promise<void> }> {
    const { login } = spec;
    if (login === undefined) return Promise.reject(new Error('The server has credentials of its own'));
    const name = this.#options.vault.nameOf(loginIdOf({ ...spec, login }));
    const pending = this.#pending.get(name) ?? this.#begin({ ...spec, login });
    this.#pending.set(name, pending);
    const over = () => this.#pending.delete(name);
    void pending.then(({ finished }) => finished).then(over, over);
    return pending;
  }

  /** Resolves after the next login of a user at a server, in this or another process. Rejects if none comes within ten minutes. */
  untilLogin(spec: RemoteSpec): Promise<void> {
    const { vault, clock } = this.#options;
    const { login } = spec;
    if (login === undefined) return Promise.reject(new Error('The server has credentials of its own'));
    const name = vault.nameOf(loginIdOf({ ...spec, login }));
    const waiting = this.#awaited.get(name) ?? new Set();
    this.#awaited.set(name, waiting);
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => () => {
        cancel();
        waiting.delete(onLogin);
        if (waiting.size === 0 && this.#awaited.get(name) === waiting) this.#awaited.delete(name);
        settle();
      };
      const onLogin = end(resolve);
      const cancel = clock.schedule(
        LOGIN_MS,
        end(() => reject(new Error('Nobody has logged in'))),
      );
      waiting.add(onLogin);
    });
  }

  async #begin(
    spec: RemoteSpec & { readonly login: LoginSettings },
  ): Promise<{ url: string; finished: Promise<void> }> {
    const { beginLogin } = await import('./login.js');
    const { vault, clock } = this.#options;
    const { url, finished } = await beginLogin({ spec, vault, clock });
    return { url, finished: finished.then(() => this.#reread()) };
  }

  /** Stops watching the logins. Rejects with a `LoginError` if a renewal is lost. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#unfollow();
    await this.#options.vault.close();
  }

  #shared(spec: OAuthAccessOptions['spec']): OAuthAccess {
    const { vault, clock, keepSecret, onRenewed } = this.#options;
    const name = vault.nameOf(loginIdOf(spec));
    const settings = JSON.stringify([spec.login, spec.headers, spec.proxy, spec.ca]);
    const known = this.#accesses.get(name);
    if (known?.settings === settings) return known.access;
    const access = new OAuthAccess({ spec, vault, clock, keepSecret, onRenewed });
    this.#accesses.set(name, { access, settings });
    if (known === undefined) this.#follow();
    return access;
  }

  #follow(): void {
    if (this.#isClosed) return;
    this.#unfollow();
    const { vault, clock } = this.#options;
    const ids = [...this.#accesses.values()].map(({ access }) => access.id);
    this.#unfollow = vault.follow(ids, { clock, onChange: () => this.#reread() });
    // A login may have changed before it was followed.
    void this.#reread();
  }

  async #reread(): Promise<void> {
    for (const [name, { access }] of [...this.#accesses]) {
      const { server, user } = access.id;
      if (!(await access.reread()) || this.#isClosed) continue;
      this.#options.onChange(server, user);
      if (access.isLoggedIn) for (const onLogin of [...(this.#awaited.get(name) ?? [])]) onLogin();
    }
  }
}
