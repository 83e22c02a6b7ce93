import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { openVault } from '../../../extras/cluster/open-stores.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import { LoginError } from '../../../upstream/auth/vault.js';
import { printable } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { note, print, printJson, tell } from '../../output.js';
import { table } from '../../terminal.js';
import { loginSpec, type ReportedLogin, reportOf, withLoginErrors } from './log-in.js';

/** `trunkline logout`: removes the tokens of a server. With `--revoke`, the authorization server revokes them first. */
export async function logout({ settings, words, options, isJson }: Invocation<{ revoke: true }>): Promise<number> {
  const [name = ''] = words;
  return await withLoginErrors(name, async () => {
    const { result, problem } = await removeLogin(settings, name, options.revoke === true);
    if (isJson) await printJson({ server: name, result, problem });
    else if (problem !== null) tell(`trunkline: ${name}: the tokens are removed here, but ${problem}`);
    else note(result === 'none' ? `There is no login at ${name}.` : `Logged out at ${name}.`);
    return problem === null ? EXIT.ok : EXIT.failed;
  });
}

/** Removes the tokens of a server and the registration of the client. `problem` says as a clause why the tokens are not revoked. */
export async function removeLogin(settings: GlobalOptions, name: string, isRevoked: boolean) {
  const { endLogin } = await import('../../../upstream/auth/login.js');
  const { spec, config } = await loginSpec(settings, name);
  const vault = await openVault(config);
  const removed = await endLogin({ spec, vault, clock: systemClock }, isRevoked);
  await vault.close();
  return removed;
}

/** Reads the logins at the servers of the configuration, the place of their key, and the faults of logins that cannot be read. */
export async function readLogins(settings: GlobalOptions) {
  const config = await readConfig(settings);
  const vault = await openVault(config);
  const storedIn = (await vault.storedIn()) ?? null;
  const logins: ReportedLogin[] = [];
  const faults = new Map<string, string>();
  for (const { spec } of config.servers) {
    if (spec?.kind !== 'remote' || spec.login === undefined) continue;
    const { server, configFile } = spec.login;
    const record = await vault.read({ server, configFile, url: spec.url }).catch((error: unknown) => {
      if (!(error instanceof LoginError)) throw error;
      faults.set(server, error.message);
      return undefined;
    });
    logins.push(reportOf(server, record, storedIn));
  }
  await vault.close();
  return { logins, storedIn, faults };
}

/** `trunkline auth status`: the logins at the servers of the configuration. */
export async function authStatus({ settings, isJson }: Invocation): Promise<number> {
  return await withLoginErrors(undefined, async () => {
    const { logins, storedIn, faults } = await readLogins(settings);
    for (const [server, fault] of faults) tell(`trunkline: ${server}: ${fault}`);
    if (isJson) {
      await printJson({ logins });
      return EXIT.ok;
    }
    if (logins.length === 0) {
      note('No server of the configuration needs a login.');
      return EXIT.ok;
    }
    const rows = logins.map(({ server, state, issuer, scopes, expiresAt }) => [
      ...[server, TEXTS[state](server), printable(issuer ?? '-'), printable(scopes.join(' ')) || '-', expiresAt ?? '-'],
    ]);
    await print(table([['SERVER', 'STATE', 'ISSUER', 'SCOPES', 'EXPIRES'], ...rows]));
    if (storedIn !== null) note(STORED[storedIn]);
    return EXIT.ok;
  });
}

export const TEXTS: Readonly<Record<ReportedLogin['state'], (server: string) => string>> = {
  logged_in: () => 'logged in',
  login_required: (server) => `not logged in: trunkline login ${server}`,
  login_expired: (server) => `expired: trunkline login ${server}`,
  scope_missing: (server) => `needs more scopes: trunkline login ${server}`,
};

const STORED = {
  keychain: 'The logins are encrypted; their key is in the keychain of the system.',
  store: 'The logins are encrypted in the store of the cluster; their key is that of `gateway.sealKeyFile`.',
  file: 'The logins are encrypted; their key is in a file beside them that only you can read.',
} as const;
