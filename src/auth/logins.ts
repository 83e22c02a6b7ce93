import { type FileWatch, watchFiles } from '../files/watch-files.js';
import type { LoginSettings, RemoteSpec } from '../supervision/launcher.js';
import type { Clock } from '../timing/clock.js';
import type { RemoteAccess } from '../upstream/http/access.js';
import { configuredAccess } from '../upstream/http/configured-access.js';
import { OAuthAccess, type OAuthAccessOptions } from './oauth-access.js';
import { Vault } from './vault.js';

export interface LoginsOptions extends Pick<OAuthAccessOptions, 'clock' | 'keepSecret' | 'onRenewed'> {
  /** The folder of the vault. */
  readonly folder: string;
  readonly clock: Clock;
  /** Called with the key of a server after a login or logout, in this or another process. */
  readonly onChange: (server: string) => void;
  readonly onUnwatchable: (error: unknown) => void;
}

/** Opens the access of connections. Shares it among those with one login, and follows the logins of other processes. */
export class Logins {
  readonly #options: LoginsOptions;
  readonly #vault: Vault;
  /** Accesses with a login, by the files of the logins. */
  readonly #accesses = new Map<string, { readonly access: OAuthAccess; readonly settings: string }>();
  /** Logins that wait for the person, by the files of the logins. */
  readonly #pending = new Map<string, Promise<{ readonly url: string; readonly finished: Promise<void> }>>();
  #watch: FileWatch | undefined;
  #isClosed = false;

  constructor(options: LoginsOptions) {
    this.#options = options;
    this.#vault = new Vault(options.folder);
  }

  /** Opens the access of one connection to a server. Call `release` when the connection ends. */
  open(spec: RemoteSpec): { readonly access: RemoteAccess; readonly release: () => unknown } {
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
    const file = this.#vault.fileOf({ ...login, url: spec.url });
    const pending = this.#pending.get(file) ?? this.#begin({ ...spec, login });
    this.#pending.set(file, pending);
    const over = () => this.#pending.delete(file);
    void pending.then(({ finished }) => finished).then(over, over);
    return pending;
  }

  async #begin(
    spec: RemoteSpec & { readonly login: LoginSettings },
  ): Promise<{ url: string; finished: Promise<void> }> {
    const { beginLogin } = await import('./login.js');
    const { url, finished } = await beginLogin({ spec, vault: this.#vault, clock: this.#options.clock });
    return { url, finished: finished.then(() => this.#reread()) };
  }

  /** Stops watching the logins. */
  close(): void {
    this.#isClosed = true;
    void this.#watch?.close();
  }

  #shared(spec: OAuthAccessOptions['spec']): OAuthAccess {
    const { clock, keepSecret, onRenewed } = this.#options;
    const file = this.#vault.fileOf({ ...spec.login, url: spec.url });
    const settings = JSON.stringify([spec.login, spec.headers, spec.proxy, spec.ca]);
    const known = this.#accesses.get(file);
    if (known?.settings === settings) return known.access;
    const access = new OAuthAccess({ spec, vault: this.#vault, clock, keepSecret, onRenewed });
    this.#accesses.set(file, { access, settings });
    if (known === undefined) this.#follow();
    return access;
  }

  #follow(): void {
    if (this.#isClosed) return;
    const before = this.#watch;
    const { clock, onUnwatchable } = this.#options;
    const watch = watchFiles({
      files: [...this.#accesses.keys()],
      clock,
      onChange: () => void this.#reread(),
      onError: onUnwatchable,
    });
    this.#watch = watch;
    // A login may have changed before the watcher was ready.
    void watch.ready.then(() => this.#reread());
    void before?.close();
  }

  async #reread(): Promise<void> {
    for (const { access } of [...this.#accesses.values()]) {
      if ((await access.reread()) && !this.#isClosed) this.#options.onChange(access.id.server);
    }
  }
}
