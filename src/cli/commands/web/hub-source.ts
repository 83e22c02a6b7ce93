import type { GlobalOptions } from '../../../app/global-options.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation } from '../../../config/file/find-config.js';
import { explain, fileErrorIn } from '../../../host/errors/file-error.js';
import { UsageError } from '../../../host/errors/usage-error.js';
import { RequestError } from '../../../host/http/send-request.js';
import { createLogger } from '../../../host/observe/logger.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import type { OutputLine } from '../../../hub/control.js';
import { Approvals, digestOf } from '../../../state/approvals.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { approvalFolders, callLogFile } from '../../../state/user-files.js';
import { adviseOnTools } from '../../../status/tool-advice.js';
import { LoginError } from '../../../upstream/auth/vault.js';
import type { CallDetail, CallRow, LoginRow, Requests, ReviewRow, ViewTools } from '../../../web/server/contract.js';
import { PageRefusal, type PageSource } from '../../../web/server/page-source.js';
import { printable } from '../../../wire/json/printable.js';
import { definitionLines } from '../../difference.js';
import { readToolUseOf } from '../calls/tool-use.js';
import { openGateway } from '../hub/hub-access.js';
import { fileWith, PageChanges, redactorOf, settingsOfServer, toolLists } from './config-changes.js';
import { HubFollower } from './follow-hub.js';
import { PageRecordings } from './page-recordings.js';
import { readPastCalls } from './past-calls.js';

/** Facts and actions of the hub of a configuration, for the page. */
export async function createPageSource(settings: GlobalOptions, isReadOnly: boolean): Promise<PageSource> {
  const recordings = new PageRecordings(settings);
  const logins = new PageLogins(settings);
  const changes = new PageChanges(settings);
  const answers: PageSource['answers'] = {
    'GET /call': async ({ id }) => (await askHub(settings, 'call', { id: Number(id) })) as CallDetail | null,
    'GET /past': async () => await readPast(settings),
    'GET /output': async (server) => (await askHub(settings, 'output', server)) as OutputLine[],
    'GET /settings': async ({ server }) => await settingsOfServer(settings, server),
    'GET /tools': async () => {
      const { views } = (await askHub(settings, 'tools')) as { readonly views: readonly ViewTools[] };
      const use = await readToolUseOf(settings, Date.now());
      const advised = views.map((view) => ({ ...view, advice: adviseOnTools(view.tools, use) }));
      return { views: advised, lists: await toolLists(settings) };
    },
    'GET /definition': async (tool) => {
      const text = (await askHub(settings, 'definition', tool)) as string | null;
      if (text === null) throw new PageRefusal(404, `${printable(tool.name)} is not shown any more.`);
      return text;
    },
    'GET /review': async ({ server }) => await review(settings, server),
    'GET /logins': async () => await logins.all(),
    'GET /findings': async () => await (await import('../doctor/doctor.js')).findFaults(settings),
    'POST /restart': async (server) => {
      await askHub(settings, 'restart', server);
      return {};
    },
    'POST /answer': async (question) => {
      const isAnswered = await askHub(settings, 'answer', question);
      if (isAnswered !== true) throw new PageRefusal(409, 'This call does not wait any more.');
      return {};
    },
    'POST /configure': async (change) => await changes.change(change.changes, change.hash),
    'POST /undo': async ({ undo }) => await changes.undo(undo),
    'POST /approve': async (body) => await approve(settings, body),
    'POST /login': async ({ server }) => await logins.begin(server),
    'POST /logout': async ({ server }) => await logins.end(server),
    'POST /record': async () => await recordings.start(),
    'POST /record/stop': async () => await recordings.stop(),
  };
  return {
    follow: (take) => {
      let end: (() => void) | undefined;
      const hub = new HubFollower(settings, isReadOnly, (frame) => {
        take(frame);
        // With another configuration, a page begins anew.
        if (frame.kind === 'hello') {
          end?.();
          end = undefined;
        }
        // Begins after the first state, because a page gets one frame in 100 ms, and needs the state first.
        if (frame.kind === 'state') end ??= recordings.follow((recording) => take({ kind: 'recording', recording }));
      });
      return () => {
        end?.();
        hub.close();
      };
    },
    answers: withRefusals(answers),
    openRecording: async (file) => await recordings.open(file),
  };
}

/** The calls of the configuration in the call log; none if there is no configuration. */
async function readPast(settings: GlobalOptions): Promise<readonly CallRow[]> {
  try {
    return await readPastCalls(callLogFile(), new ConfigLocation(settings).file);
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

/** Turns errors whose message is for the user into refusals. */
function withRefusals(answers: PageSource['answers']): PageSource['answers'] {
  const guarded = Object.entries(answers).map(([request, answer]) => [
    request,
    async (values: never) =>
      await answer(values).catch((error: unknown) => {
        throw refusalOf(error) ?? error;
      }),
  ]);
  return Object.fromEntries(guarded);
}

function refusalOf(error: unknown): PageRefusal | undefined {
  if (error instanceof ConfigError) return new PageRefusal(error.code === 'config-changed' ? 409 : 400, error.report);
  if (error instanceof UsageError || fileErrorIn(error) !== undefined) return new PageRefusal(400, explain(error));
  if (!(error instanceof LoginError || error instanceof RequestError)) return undefined;
  const hint = error instanceof LoginError && error.hint !== undefined ? `; ${error.hint}` : '';
  return new PageRefusal(400, `${error.message}${hint}`);
}

/** Gives the running gateway a command. Throws a `PageRefusal` if none can be reached, or if it refuses the command. */
async function askHub(settings: GlobalOptions, command: string, params: object = {}): Promise<unknown> {
  const open = await openGateway(settings);
  if ('because' in open) throw new PageRefusal(503, open.because);
  const { control } = open;
  try {
    return await control.request(command, { ...params });
  } catch (error) {
    // The hub refuses the command in a sentence, or has ended.
    throw new PageRefusal(400, error instanceof Error ? error.message : String(error));
  } finally {
    control.close();
  }
}

/** The approvals of a server, and its tools that wait for approval: the latest definition of each. */
function approvalsOf(settings: GlobalOptions, server: string) {
  const logger = createLogger({ verbosity: 0, redact: (text) => text });
  logger.level = 'silent';
  const options = { folders: approvalFolders('review'), clock: systemClock, logger, onChange: () => {} };
  const approvals = new Approvals(options).of(server, fileWith(settings, server));
  if (approvals.isUnreadable) throw new PageRefusal(400, approvals.facts.fault ?? 'The approvals cannot be read.');
  return { approvals, waiting: new Map(approvals.withheld.map((tool) => [tool.name, tool])) };
}

async function review(settings: GlobalOptions, server: string): Promise<ReviewRow[]> {
  const { approvals, waiting } = approvalsOf(settings, server);
  const redact = await redactorOf(settings);
  return [...waiting.values()].map((tool) => {
    const { wasApproved, definition: earlier } = approvals.earlier(tool);
    const lines = definitionLines(tool.definition, earlier).map(({ sign, text }) => ({ sign, text: redact(text) }));
    return { tool: tool.name, change: wasApproved ? 'changed' : 'new', hash: digestOf(tool.definition), lines };
  });
}

async function approve(
  settings: GlobalOptions,
  { server, tool: name, hash }: Requests['POST /approve']['values'],
): Promise<object> {
  return await withChangeLock(() => {
    const { approvals, waiting } = approvalsOf(settings, server);
    const tool = waiting.get(name);
    if (tool === undefined) throw new PageRefusal(409, `${printable(name)} does not wait for approval any more.`);
    if (digestOf(tool.definition) !== hash)
      throw new PageRefusal(
        409,
        `${printable(name)} has changed since it was shown, so it was not approved. Read the change again.`,
      );
    approvals.approve([tool]);
    return {};
  });
}

/** The logins at the servers of the configuration, and those that the page has begun. */
class PageLogins {
  readonly #settings: GlobalOptions;
  readonly #pending = new Map<string, Requests['POST /login']['answer']>();
  readonly #faults = new Map<string, string>();

  constructor(settings: GlobalOptions) {
    this.#settings = settings;
  }

  async all(): Promise<LoginRow[]> {
    const { readLogins, TEXTS } = await import('../logins/auth.js');
    const { logins, faults } = await readLogins(this.#settings);
    return logins.map(({ storedIn: _, ...login }) => {
      const fault = faults.get(login.server) ?? this.#faults.get(login.server);
      const waits = this.#pending.has(login.server) ? 'A login has begun and waits for you in the browser.' : undefined;
      return { ...login, note: waits ?? fault ?? TEXTS[login.state](login.server) };
    });
  }

  /** Begins a login in the browser of the page. It waits for ten minutes. */
  async begin(server: string): Promise<Requests['POST /login']['answer']> {
    const before = this.#pending.get(server);
    if (before !== undefined) return before;
    const [{ loginSpec }, { beginLogin }, { openVault }] = await Promise.all([
      import('../logins/log-in.js'),
      import('../../../upstream/auth/login.js'),
      import('../../../extras/cluster/open-stores.js'),
    ]);
    const { spec, config } = await loginSpec(this.#settings, server);
    if (spec.login.grant === 'client_credentials')
      return { url: null, text: 'Trunkline gets its tokens with the client credentials of the configuration.' };
    const vault = await openVault(config);
    const begun = beginLogin({ spec, vault, clock: systemClock });
    begun
      .then(({ finished }) => finished)
      .finally(() => vault.close())
      .catch((error: unknown) => {
        this.#faults.set(
          server,
          `The login failed: ${refusalOf(error)?.message ?? 'the reason is a bug of Trunkline'}.`,
        );
      })
      .finally(() => this.#pending.delete(server));
    const { url } = await begun;
    const answer = { url, text: 'Log in on this page. Trunkline continues when the browser has come back.' };
    this.#pending.set(server, answer);
    this.#faults.delete(server);
    return answer;
  }

  async end(server: string): Promise<{ readonly text: string }> {
    const { removeLogin } = await import('../logins/auth.js');
    const { result } = await removeLogin(this.#settings, server, false);
    this.#faults.delete(server);
    return { text: result === 'none' ? `There is no login at ${server}.` : `Logged out at ${server}.` };
  }
}
