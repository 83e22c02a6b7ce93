import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { candidateFiles, currentFolder, findConfigFile, userConfigFile } from '../../../config/file/find-config.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { FileRefusal } from '../../../host/files/edit/parse-text.js';
import {
  type CarriedOut,
  ChangeJournal,
  carryOut,
  changesToUndo,
  type FileChange,
  type Plan,
  planConnect,
  planDisconnect,
  planTakeOut,
  type Undone,
  undoChange,
} from '../../../setup/clients/files/change-client-file.js';
import { isInstalled, thisSystem } from '../../../setup/clients/files/client-locations.js';
import { CLIENTS, clientNamed, type KnownClient } from '../../../setup/clients/files/client-table.js';
import type { FoundServer } from '../../../setup/clients/files/found-server.js';
import { type OwnCommand, ownCommand } from '../../../setup/clients/files/own-entry.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { clientChangesFile } from '../../../state/user-files.js';
import { quotedPath } from '../../../wire/json/printable.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { type EmitJson, printJson, say, tell, withoutHome } from '../../output.js';
import { prepareImport } from './import.js';
import { describeAfterUndo, twoFiles } from './kept-files.js';

type ConnectInvocation = Invocation<{ all: boolean; dryRun: boolean }>;

/** `trunkline connect`: registers Trunkline with clients. */
export async function connect({ settings, words, options, isJson }: ConnectInvocation): Promise<number> {
  const { all: isAll = false, dryRun: isDryRun = false } = options;
  const clients = chosenClients('connect', words, isAll);
  const own = ownCommand(process.execPath, programPath(), configForClients(settings.config));
  const code = await withChangeLock(
    async () => {
      const keepsConfig = settings.config === undefined;
      const plans = await planAll(clients, (client) => {
        return planConnect(client, own, { ...context(), isNamed: !isAll, keepsConfig });
      });
      const wanted = isAll ? plans.filter(({ kind, client }) => kind !== 'refused' || isInstalledHere(client)) : plans;
      return await carryOutAll(wanted, own, { isDryRun, isJson });
    },
    { isDryRun },
  );
  if (!isJson) for (const remark of remarksOn(own, settings.config)) tell(remark);
  return code;
}

/** `trunkline disconnect`: removes Trunkline from clients. */
export async function disconnect({ words, options, isJson }: ConnectInvocation): Promise<number> {
  const { all: isAll = false, dryRun: isDryRun = false } = options;
  const clients = chosenClients('disconnect', words, isAll);
  return await withChangeLock(
    async () => {
      const plans = await planAll(clients, (client) => planDisconnect(client, context()));
      const wanted = isAll ? plans.filter(({ kind }) => kind !== 'unchanged') : plans;
      return await carryOutAll(wanted, undefined, { isDryRun, isJson });
    },
    { isDryRun },
  );
}

/** `trunkline undo`: takes back the changes of the last command, or of the last command for each of these clients. */
export async function undo({ settings, words, options, isJson }: ConnectInvocation): Promise<number> {
  const { all: isAll = false } = options;
  const clients = isAll || words.length > 0 ? chosenClients('undo', words, isAll) : undefined;
  const journal = new ChangeJournal(clientChangesFile());
  const names = clients?.map(({ client }) => client);
  const changes = await changesToUndo(journal, names);
  const results: object[] = [];
  // `init` changes a file twice.
  const told = new Set<string>();
  let code: number = EXIT.ok;
  for (const change of changes) {
    try {
      const undone = await withChangeLock(() => undoChange(change, { ...context(), journal }));
      results.push({ ...factsOf(change), result: undone, because: null });
      const text = undoneText(change, undone);
      if (!isJson && !told.has(text)) await say(text);
      told.add(text);
    } catch (error) {
      if (!(error instanceof FileRefusal)) throw error;
      results.push({ ...factsOf(change), result: 'failed', because: error.message });
      tell(`trunkline: ${titleOf(change)}: cannot undo the change of ${shown(change.file)}: ${error.message}`);
      code = EXIT.failed;
    }
  }
  if (isJson) await printJson({ changes: results });
  else if (changes.length === 0) await say('There is nothing to undo.');
  else for (const line of await twoFilesAfterUndo(settings)) tell(line);
  return code;
}

/** Lines about the data of servers that a client runs again. A configuration that cannot be used does not make an undo fail. */
async function twoFilesAfterUndo(settings: GlobalOptions): Promise<readonly string[]> {
  try {
    const { plan, target } = await prepareImport(settings);
    return twoFiles(plan, target.config).flatMap(describeAfterUndo);
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

function factsOf(change: FileChange): object {
  return { client: change.client, title: titleOf(change), file: change.file };
}

function chosenClients(command: string, names: readonly string[], isAll: boolean): readonly KnownClient[] {
  if (isAll && names.length > 0) throw new UsageError('`--all` means every client', 'leave out the names, or `--all`');
  if (isAll) return CLIENTS;
  if (names.length === 0) {
    const here = CLIENTS.filter(isInstalledHere);
    const which = here.length === 0 ? 'Trunkline knows' : 'installed here are';
    const hint = `${which} ${(here.length === 0 ? CLIENTS : here).map(({ client }) => client).join(', ')}`;
    throw new UsageError(`\`trunkline ${command}\` needs the name of a client, or \`--all\``, hint);
  }
  return clientsNamed(names);
}

/** The clients with these names. Throws a `UsageError` for a name that no client has. */
export function clientsNamed(names: readonly string[]): readonly KnownClient[] {
  return [...new Set(names)].map((name) => {
    const client = clientNamed(name.toLowerCase());
    if (client !== undefined) return client;
    const known = CLIENTS.map((each) => each.client);
    throw new UsageError(`there is no client \`${name}\``, hintFor(name, known, `Trunkline knows ${known.join(', ')}`));
  });
}

/**
 * The absolute path of the configuration to register: that of `--config`, of TRUNKLINE_CONFIG, or of the user. Never one in the
 * current folder, which may be a stranger's repository. Throws a `ConfigError` if a named file does not exist.
 */
function configForClients(flag: string | undefined): string {
  const { env, platform } = process;
  const place = { env, cwd: currentFolder(), home: homedir(), platform };
  const isNamed = Boolean(flag || env.TRUNKLINE_CONFIG);
  const isThere = isNamed || candidateFiles({ ...place, searchesFolder: false }).some((file) => existsSync(file));
  return isThere ? findConfigFile({ ...place, flag, searchesFolder: false }) : userConfigFile(place);
}

/** Returns remarks, one of them about a configuration in the current folder, which clients do not use. */
function remarksOn({ warning }: OwnCommand, flag: string | undefined): string[] {
  const remarks = warning === undefined ? [] : [`warning: ${warning}`];
  if (flag !== undefined || process.env.TRUNKLINE_CONFIG) return remarks;
  const here = ['trunkline.yaml', 'trunkline.yml'].map((name) => resolve(name)).find((file) => existsSync(file));
  if (here === undefined) return remarks;
  return [
    ...remarks,
    `note: clients will not use ${here}; \`trunkline trust\` adds its servers for clients in this folder, \`--config ${here}\` uses it alone`,
  ];
}

function undoneText(change: FileChange, undone: Undone): string {
  const title = titleOf(change);
  const file = shown(change.file);
  const restart = `\n  Restart ${title}.`;
  switch (undone) {
    case 'restored':
      return `${title}: ${file} is as it was${restart}`;
    case 'deleted':
      return `${title}: removed ${file}, which Trunkline had created${restart}`;
    case 'entries':
      return `${title}: ${file} has changed since, so only Trunkline's changes were taken back${restart}`;
    case 'nothing':
      return `${title}: nothing of the change is left in ${file}`;
  }
}

function titleOf({ client }: FileChange): string {
  return clientNamed(client)?.title ?? client;
}

function isInstalledHere(client: KnownClient): boolean {
  return isInstalled(client, thisSystem());
}

async function planAll(
  clients: readonly KnownClient[],
  plan: (client: KnownClient) => Promise<Plan[]>,
): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const client of clients) plans.push(...(await plan(client)));
  return plans;
}

/**
 * Registers Trunkline with clients, and removes the servers `taken` from their files. One undo takes both back. The clients use `config`,
 * an absolute path. Returns the exit code.
 */
export async function registerAndTakeOut(
  clients: readonly KnownClient[],
  taken: readonly FoundServer[],
  config: string,
  { isJson, emit }: { readonly isJson: boolean; readonly emit: EmitJson },
): Promise<number> {
  return await withChangeLock(async () => {
    const own = ownCommand(process.execPath, programPath(), config);
    const options = { isDryRun: false, isJson, emit, run: new Date().toISOString(), tellsRestart: false };
    const toAdd = await planAll(clients, (client) =>
      planConnect(client, own, { ...context(), isNamed: true, keepsConfig: false }),
    );
    const registered = await carryOutAll(toAdd, own, options);
    if (own.warning !== undefined) tell(`warning: ${own.warning}`);
    // A client without Trunkline keeps its servers.
    const refused = new Set(toAdd.flatMap(({ kind, client }) => (kind === 'refused' ? [client.client] : [])));
    const left = taken.filter(({ place }) => !refused.has(place.client));
    const toRemove = await planTakeOut(left, thisSystem());
    const removed = toRemove.length === 0 ? EXIT.ok : await carryOutAll(toRemove, undefined, options);
    return Math.max(registered, removed);
  });
}

/** Registers Trunkline with a client anew, with the configuration of the user. Throws if the file cannot be changed. */
export async function registerAgain(name: string): Promise<void> {
  const own = ownCommand(process.execPath, programPath(), configForClients(undefined));
  await withChangeLock(async () => {
    const options = { ...context(), isNamed: true, keepsConfig: true };
    await carryOutSilently(await planAll(clientsNamed([name]), (client) => planConnect(client, own, options)));
  });
}

/** Removes servers from their clients. One undo takes back all changes of one `run`. Throws if a file cannot be changed. */
export async function takeOutOfClients(servers: readonly FoundServer[], run: string): Promise<void> {
  await withChangeLock(async () => {
    await carryOutSilently(await planTakeOut(servers, thisSystem()), run);
  });
}

async function carryOutSilently(plans: readonly Plan[], run?: string): Promise<void> {
  for (const plan of plans) {
    if (!isChange(plan)) throw new FileRefusal(plan.because);
    const { unrecorded } = await carryOut(plan, context(run));
    if (unrecorded !== undefined) tell(`undo does not know of this: ${shown(unrecorded)}`);
  }
}

/** Carries out the plans one after the other, and reports each. Returns the exit code. The caller holds the change lock. */
async function carryOutAll(
  plans: readonly Plan[],
  own: OwnCommand | undefined,
  { isDryRun, isJson, emit = printJson, run, tellsRestart = !isDryRun }: CarryOutAllOptions,
): Promise<number> {
  const options = context(run);
  const reports: Report[] = [];
  for (const plan of plans) {
    const report = isDryRun || !isChange(plan) ? { plan } : await attempt(plan);
    reports.push(report);
    if (!isJson) await tellReport(report, own, { isDryRun, tellsRestart });
  }
  if (isJson) await emit({ dryRun: isDryRun, changes: reports.map(toJson) });
  else if (plans.length === 0) await say('No client needs a change.');
  return reports.some(({ plan, failed }) => plan.kind === 'refused' || failed !== undefined) ? EXIT.failed : EXIT.ok;

  async function attempt(plan: Extract<Plan, { content: string }>): Promise<Report> {
    try {
      return { plan, done: await carryOut(plan, options) };
    } catch (error) {
      if (!(error instanceof FileRefusal)) throw error;
      return { plan, failed: error.message };
    }
  }
}

interface CarryOutAllOptions {
  readonly isDryRun: boolean;
  readonly isJson: boolean;
  readonly emit?: EmitJson;
  /** Name of this run. The default is a new name. One undo takes back all changes of one run. */
  readonly run?: string;
  /** Whether the report of each change says that the client has to be restarted. The default is `true`. */
  readonly tellsRestart?: boolean;
}

interface Report {
  readonly plan: Plan;
  readonly done?: CarriedOut;
  readonly failed?: string;
}

async function tellReport(
  { plan, done, failed }: Report,
  own: OwnCommand | undefined,
  { isDryRun, tellsRestart }: { readonly isDryRun: boolean; readonly tellsRestart: boolean },
): Promise<void> {
  const { title } = plan.client;
  if (!isChange(plan)) {
    const where = plan.file === undefined ? '' : ` (${shown(plan.file)})`;
    if (plan.kind === 'unchanged') return await say(`${title}: nothing to do${where}: ${plan.because}`);
    return tell(`trunkline: ${title}: not changed${where}: ${plan.because}`);
  }
  const file = shown(plan.place.file);
  if (failed !== undefined) return tell(`trunkline: ${title}: not changed (${file}): ${failed}`);
  const names = plan.entries.map(({ name }) => `\`${name}\``).join(', ');
  const [would, has] = ACTIONS[plan.kind];
  const lines = [`${title}: ${isDryRun ? `would ${would(names)}` : `has ${has(names)}`} ${file}`];
  if (plan.entry !== undefined && own !== undefined) {
    const words = [own.command, ...own.args].map((word) => quotedPath(word, process.platform));
    lines.push(`  starts: \`${words.join(' ')}\``);
  }
  if (done?.program !== undefined) lines.push(`  changed with ${shown(done.program)}`);
  if (done?.backup !== undefined) lines.push(`  backup: ${shown(done.backup)}`);
  if (done?.unrecorded !== undefined) lines.push(`  undo does not know of this: ${shown(done.unrecorded)}`);
  if (tellsRestart) lines.push(`  Restart ${title}.`);
  await say(lines.join('\n'));
}

const ACTIONS = {
  add: [(names: string) => `add ${names} to`, (names: string) => `a new entry ${names} in`],
  replace: [(names: string) => `change ${names} in`, (names: string) => `a changed entry ${names} in`],
  remove: [(names: string) => `remove ${names} from`, (names: string) => `no entry ${names} any more in`],
} as const;

function toJson({ plan, done, failed }: Report) {
  const { client, title } = plan.client;
  const file = isChange(plan) ? plan.place.file : plan.file;
  const because = isChange(plan) ? failed : plan.because;
  const action = failed === undefined ? plan.kind : 'failed';
  const { backup = null, program = null } = done ?? {};
  return { client, title, file: file ?? null, action, because: because ?? null, backup, program };
}

function isChange(plan: Plan): plan is Extract<Plan, { content: string }> {
  return 'content' in plan;
}

/** Makes the parameters of plans and changes of clients' files. One undo takes back all changes of one `run`. */
function context(run = new Date().toISOString()) {
  const journal = new ChangeJournal(clientChangesFile());
  return { system: thisSystem(), cliPath: programPath(), now: new Date(), runProgram, journal, run };
}

/** Time limit for a client's program, which needs seconds, unless it waits for input. */
const PROGRAM_TIMEOUT_MS = 30_000;

async function runProgram(file: string, args: readonly string[]): Promise<boolean> {
  const { execa } = await import('execa');
  const options = { cwd: homedir(), reject: false, stdio: 'ignore', timeout: PROGRAM_TIMEOUT_MS } as const;
  return (await execa(file, [...args], options)).exitCode === 0;
}

function programPath(): string {
  return process.argv[1] ?? '';
}

/** Returns a path for messages. A path in the home folder begins with `~`. */
function shown(file: string): string {
  return withoutHome(file, homedir());
}
