import { createInterface } from 'node:readline';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig, refuseDisabled } from '../../../app/read-config.js';
import type { Config } from '../../../config/resolve/config.js';
import { openVault } from '../../../extras/cluster/open-stores.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { RequestError } from '../../../host/http/send-request.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import type { LoginSettings, RemoteSpec } from '../../../spec/server-spec.js';
import { scopesIn } from '../../../upstream/auth/challenge.js';
import type { LoginOptions, PendingDeviceLogin, PendingLogin } from '../../../upstream/auth/login.js';
import { LoginError, type LoginRecord } from '../../../upstream/auth/vault.js';
import { hintFor } from '../../../wire/json/suggest.js';
import { openBrowser } from '../../browser.js';
import type { Invocation } from '../../command.js';
import { note, print, printJson, tell } from '../../output.js';

interface LoginFlags {
  /** `false` for `--no-browser`. */
  readonly browser: boolean;
  readonly device: true;
  readonly scope: readonly string[];
  readonly clientId: string;
}

/** `trunkline login`: logs in at a server behind a URL, in the browser or on another device. */
export async function login({ settings, words, options, isJson }: Invocation<LoginFlags>): Promise<number> {
  const [name = ''] = words;
  const { spec, config } = await loginSpec(settings, name);
  if (spec.login.grant === 'client_credentials') {
    note(
      `The server ${name} needs no login: Trunkline gets its tokens with the client credentials of the configuration.`,
    );
    return EXIT.ok;
  }
  const vault = await openVault(config);
  const { scope: scopes, clientId, device = false, browser = true } = options;
  const chosen = { spec, vault, clock: systemClock, scopes, clientId, confirmIssuer };
  return await withLoginErrors(name, async () => {
    // With `--json`, stdout has only the result.
    const showPage = isJson ? async (url: string) => tell(url) : print;
    const record = device ? await loginOnDevice(chosen, showPage) : await loginInBrowser(chosen, browser, showPage);
    const report = reportOf(name, record, (await vault.storedIn()) ?? null);
    await vault.close();
    if (isJson) await printJson(report);
    const scope = report.scopes.join(' ');
    note(`Logged in at ${name} (${record.issuer})${scope === '' ? '' : `, scope: ${scope}`}.`);
    return EXIT.ok;
  });
}

async function confirmIssuer(issuer: string, keys: readonly string[]): Promise<boolean> {
  const { openQuestions } = await import('../../questions.js');
  const gets = keys.map((key) => `\`oauth.${key}\``).join(' and ');
  const question = `The server names the authorization server ${issuer}, which gets ${gets}. Is it the right one?`;
  return (await (await openQuestions())?.confirm(question, { byDefault: false })) === true;
}

/** Runs the work of a command, and prints the reason if a login fails. */
export async function withLoginErrors(name: string | undefined, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof LoginError || error instanceof RequestError)) throw error;
    const hint = error instanceof LoginError && error.hint !== undefined ? `; ${error.hint}` : '';
    // The message may quote the authorization server.
    const { createRedactor } = await import('../../../host/observe/redact.js');
    const message = createRedactor([])(error.message);
    tell(`trunkline: ${name === undefined ? '' : `${name}: `}${message}${hint}`);
    return EXIT.failed;
  }
}

/** Returns the server with this key, and its configuration. Throws a `UsageError` if it is unknown, has a mistake, or needs no login. */
export async function loginSpec(
  settings: GlobalOptions,
  name: string,
): Promise<{ readonly spec: RemoteSpec & { readonly login: LoginSettings }; readonly config: Config }> {
  const config = await readConfig(settings, undefined, undefined, 'own');
  const { servers, file, disabled } = config;
  const server = servers.find(({ layer }) => layer?.key === name) ?? servers.find(({ key }) => key === name);
  if (server === undefined) refuseDisabled([name], disabled);
  if (server === undefined) {
    const remote = servers.filter(({ spec }) => spec?.kind === 'remote').map(({ key }) => key);
    throw new UsageError(
      `there is no server \`${name}\` in ${file}`,
      hintFor(name, remote, 'add it with `trunkline add NAME URL`'),
    );
  }
  const { spec, problem } = server;
  if (problem !== undefined) throw new UsageError(`server \`${name}\`: ${problem.message}`, problem.hint);
  if (spec?.kind !== 'remote')
    throw new UsageError(
      `server \`${name}\` is a program on this machine, which needs no login`,
      'give it keys with `env`',
    );
  const { login: ofServer } = spec;
  if (ofServer === undefined)
    throw new UsageError(
      `server \`${name}\` has credentials in its entry (\`headers\` or \`headersCommand\`)`,
      'remove them to log in instead',
    );
  return { spec: { ...spec, login: ofServer }, config };
}

type ShowPage = (url: string) => Promise<void>;

async function loginInBrowser(chosen: LoginOptions, opensBrowser: boolean, showPage: ShowPage): Promise<LoginRecord> {
  const { beginLogin } = await import('../../../upstream/auth/login.js');
  const pending = await beginLogin(chosen);
  if (opensBrowser) note('Log in in the browser. If it does not open, open this page:');
  else note('Open this page in a browser on any machine:');
  await showPage(pending.url);
  note('If the browser then shows an error because it is on another machine, paste the address of that page here.');
  if (pending.refusal !== undefined)
    note(
      `The authorization server answered ${pending.refusal} when Trunkline asked for this page. ${aboutRedirect(pending)}`,
    );
  const closeFile = opensBrowser ? openBrowser(pending.url) : undefined;
  const reminder = setTimeout(() => {
    if (pending.refusal === undefined)
      note(`Nothing has come back yet. If the page shows an error: ${aboutRedirect(pending)}`);
  }, REMIND_MS);
  return await withPastedUrls(pending).finally(() => {
    clearTimeout(reminder);
    closeFile?.();
  });
}

/** Time after which the command says what may be wrong with the page, in milliseconds. */
const REMIND_MS = 15_000;

function aboutRedirect({ redirectUri }: PendingLogin): string {
  return `The redirect URI ${redirectUri} must be registered there. Set another one with \`oauth: { redirectUri: … }\`, such as http://localhost:27890/callback.`;
}

/** Takes lines of stdin as URLs until the login ends. Stdin may be closed, or stay open without a line. */
async function withPastedUrls(pending: PendingLogin): Promise<LoginRecord> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  lines.on('line', (line) => {
    if (line.trim() !== '' && !pending.submit(line))
      tell(
        `This is not the address of the page after this login. It begins with ${pending.redirectUri} and has a \`code\` and the \`state\` of this login.`,
      );
  });
  try {
    return await pending.finished;
  } finally {
    // Pauses stdin, because `trunkline init` reads it again.
    lines.close();
  }
}

async function loginOnDevice(chosen: LoginOptions, showPage: ShowPage): Promise<LoginRecord> {
  const { beginDeviceLogin } = await import('../../../upstream/auth/login.js');
  const { verificationUri, userCode, finished }: PendingDeviceLogin = await beginDeviceLogin(chosen);
  note('Open this page on any device:');
  await showPage(verificationUri);
  note(`Type this code there: ${userCode}`);
  return await finished;
}

export interface ReportedLogin {
  readonly server: string;
  readonly issuer: string | null;
  readonly state: 'logged_in' | 'login_required' | 'login_expired' | 'scope_missing';
  readonly scopes: readonly string[];
  /** End of the access token as an ISO date. Trunkline renews the token if the authorization server allows it. */
  readonly expiresAt: string | null;
  /** The place of the key of the login or, for `store`, of the login itself; null without a login. */
  readonly storedIn: 'keychain' | 'file' | 'store' | null;
}

/** Reports a login. `record` is `undefined` if there is none. */
export function reportOf(
  server: string,
  record: LoginRecord | undefined,
  storedIn: ReportedLogin['storedIn'],
): ReportedLogin {
  const { tokens, requestedScopes = [], issuer = null } = record ?? {};
  return {
    server,
    issuer,
    state: stateOf(record),
    scopes: tokens === undefined ? [] : tokens.scope === undefined ? requestedScopes : scopesIn(tokens.scope),
    expiresAt: tokens?.expiresAt === undefined ? null : new Date(tokens.expiresAt).toISOString(),
    storedIn: record === undefined ? null : storedIn,
  };
}

function stateOf(record: LoginRecord | undefined): ReportedLogin['state'] {
  if (record?.state === 'expired') return 'login_expired';
  if (record?.tokens === undefined) return 'login_required';
  return record.missingScopes === undefined ? 'logged_in' : 'scope_missing';
}
