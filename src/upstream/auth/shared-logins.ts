import type { LoginSettings, RemoteSpec } from '../../spec/server-spec.js';
import type { Cancel, Clock } from '../../wire/timing/clock.js';
import type { OpenedAccess } from '../http/access.js';
import { configuredAccess } from '../http/configured-access.js';
import { OAuthAccess, type OAuthAccessOptions } from './oauth-access.js';
import { loginIdOf, type Vault } from './vault.js';

export interface SharedLoginsOptions extends Pick<OAuthAccessOptions, 'clock' | 'keepSecret' | 'onRenewed'> {
  readonly vault: Vault;
  readonly clock: Clock;
  /** Called after a login or logout at a server, in this or another process, with the principal if the login is of a user. */
  readonly onChange: (server: string, user: string | undefined) => void;
}

/** Opens one access for all connections with the same login. Watches the logins, because other processes change them, too. */
export class SharedLogins {
  readonly #options: SharedLoginsOptions;
  /** Accesses with a login, by the names of the logins. */
  readonly #accesses = new Map<string, { readonly access: OAuthAccess; readonly settings: string }>();
  /** Logins that wait for the person, by the names of the logins. */
  readonly #pending = new Map<string, Promise<{ readonly url: string; readonly finished: Promise<void> }>>();
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
    this.#unfollow = vault.follow(ids, { clock, onChange: () => void this.#reread() });
    // A login may have changed before it was followed.
    void this.#reread();
  }

  async #reread(): Promise<void> {
    for (const { access } of [...this.#accesses.values()]) {
      const { server, user } = access.id;
      if ((await access.reread()) && !this.#isClosed) this.#options.onChange(server, user);
    }
  }
}
