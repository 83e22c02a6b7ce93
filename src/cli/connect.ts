import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import { clientChangesFile } from '../app/user-files.js';
import { type CarriedOut, carryOut } from '../clients/carry-out.js';
import { type Change, ChangeJournal } from '../clients/change-journal.js';
import { CLIENTS, type Client, clientNamed } from '../clients/client-table.js';
import { isInstalled } from '../clients/client-target.js';
import { OWN_NAME, type OwnCommand, ownCommand } from '../clients/own-entry.js';
import { type Plan, planConnect, planDisconnect } from '../clients/plan-change.js';
import { Refusal } from '../clients/refusal.js';
import { thisSystem } from '../clients/this-system.js';
import { changesToUndo, type Undone, undoChange } from '../clients/undo-change.js';
import { findConfigFile } from '../config/find-config.js';
import { didYouMean, suggest } from '../json/suggest.js';
import { print, tell } from './output.js';

export interface ConnectOptions {
  /** The names of clients on the command line. */
  readonly clients: readonly string[];
  readonly isAll: boolean;
  readonly isDryRun: boolean;
  readonly isJson: boolean;
}

/** `trunkline connect`: registers Trunkline with clients. */
export async function connect(settings: GlobalOptions, options: ConnectOptions): Promise<number> {
  const clients = chosenClients('connect', options);
  const config = chosenConfig(settings.config);
  const own = ownCommand({ execPath: process.execPath, cliPath: programPath(), config });
  const plans = await forEachClient(clients, (client) => {
    return planConnect(client, own, { ...planOptions(), isNamed: !options.isAll });
  });
  const wanted = options.isAll
    ? plans.filter(({ kind, client }) => kind !== 'refused' || isInstalledHere(client))
    : plans;
  const code = await carryOutAll(wanted, own, options);
  if (!options.isJson) for (const remark of remarksOn(own, config)) tell(remark);
  return code;
}

/** `trunkline disconnect`: removes Trunkline from clients. */
export async function disconnect(options: ConnectOptions): Promise<number> {
  const clients = chosenClients('disconnect', options);
  const plans = await forEachClient(clients, (client) => planDisconnect(client, planOptions()));
  return await carryOutAll(
    options.isAll ? plans.filter(({ kind }) => kind !== 'unchanged') : plans,
    undefined,
    options,
  );
}

/** `trunkline undo`: takes back what the last command has changed, or the last command for each of these clients. */
export async function undo({ clients: names, isAll }: Pick<ConnectOptions, 'clients' | 'isAll'>): Promise<number> {
  const clients = isAll || names.length > 0 ? chosenClients('undo', { clients: names, isAll }) : undefined;
  const journal = new ChangeJournal(clientChangesFile());
  const changes = await changesToUndo(
    journal,
    clients?.map(({ client }) => client),
  );
  if (changes.length === 0) await print('There is nothing to undo.');
  let code: number = EXIT.ok;
  for (const change of changes) {
    try {
      const undone = await undoChange(change, { ...planOptions(), ...execution(), journal });
      await print(undoneText(change, undone));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      tell(`trunkline: ${titleOf(change)}: cannot undo the change of ${shown(change.file)}: ${error.message}`);
      code = EXIT.failed;
    }
  }
  return code;
}

function chosenClients(
  command: 'connect' | 'disconnect' | 'undo',
  { clients: names, isAll }: Pick<ConnectOptions, 'clients' | 'isAll'>,
): readonly Client[] {
  if (isAll && names.length > 0) throw new UsageError('`--all` means every client', 'leave out the names, or `--all`');
  if (isAll) return CLIENTS;
  if (names.length === 0) {
    const here = CLIENTS.filter(isInstalledHere).map(({ client }) => client);
    const hint = here.length === 0 ? CLIENTS.map(({ client }) => client).join(', ') : here.join(', ');
    const which = here.length === 0 ? 'Trunkline knows' : 'installed here are';
    throw new UsageError(`\`trunkline ${command}\` needs the name of a client, or \`--all\``, `${which} ${hint}`);
  }
  return [...new Set(names)].map((name) => {
    const client = clientNamed(name.toLowerCase());
    if (client !== undefined) return client;
    const known = CLIENTS.map((each) => each.client);
    const nearest = suggest(name, known);
    const hint = nearest === undefined ? `Trunkline knows ${known.join(', ')}` : didYouMean(nearest);
    throw new UsageError(`there is no client \`${name}\``, hint);
  });
}

/** The absolute path of `--config`. Throws a `ConfigError` if there is no such file. */
function chosenConfig(flag: string | undefined): string | undefined {
  if (flag === undefined) return undefined;
  const { env, platform } = process;
  return findConfigFile({ flag, env, cwd: process.cwd(), home: homedir(), platform });
}

/** A client starts Trunkline in another folder and without the variables of this shell. */
function remarksOn({ warning }: OwnCommand, config: string | undefined): string[] {
  const remarks = warning === undefined ? [] : [`warning: ${warning}`];
  if (config !== undefined) return remarks;
  const variable = process.env.TRUNKLINE_CONFIG;
  const here = ['trunkline.yaml', 'trunkline.yml'].map((name) => resolve(name)).find((file) => existsSync(file));
  const used = variable ? resolve(variable) : here;
  if (used !== undefined) {
    remarks.push(
      `note: clients will not use ${used}, but the configuration in your configuration folder; to use this one, add \`--config ${used}\``,
    );
  }
  return remarks;
}

async function forEachClient(clients: readonly Client[], plan: (client: Client) => Promise<Plan[]>): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const client of clients) plans.push(...(await plan(client)));
  return plans;
}

async function carryOutAll(
  plans: readonly Plan[],
  own: OwnCommand | undefined,
  { isDryRun, isJson }: Pick<ConnectOptions, 'isDryRun' | 'isJson'>,
): Promise<number> {
  const journal = new ChangeJournal(clientChangesFile());
  const options = { ...planOptions(), ...execution(), journal, run: new Date().toISOString() };
  const reports: Report[] = [];
  for (const plan of plans) {
    const report = isDryRun || !isChange(plan) ? { plan } : await attempt(plan);
    reports.push(report);
    if (!isJson) await tellReport(report, own, isDryRun);
  }
  if (isJson) await print(JSON.stringify({ dryRun: isDryRun, changes: reports.map(toJson) }, null, 2));
  else if (plans.length === 0) await print('No client needs a change.');
  return reports.some(({ plan, failed }) => plan.kind === 'refused' || failed !== undefined) ? EXIT.failed : EXIT.ok;

  async function attempt(plan: Extract<Plan, { content: string }>): Promise<Report> {
    try {
      return { plan, done: await carryOut(plan, options) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { plan, failed: error.message };
    }
  }
}

interface Report {
  readonly plan: Plan;
  readonly done?: CarriedOut;
  readonly failed?: string;
}

async function tellReport(
  { plan, done, failed }: Report,
  own: OwnCommand | undefined,
  isDryRun: boolean,
): Promise<void> {
  const { title } = plan.client;
  if (!isChange(plan)) {
    const where = plan.file === undefined ? '' : ` (${shown(plan.file)})`;
    if (plan.kind === 'unchanged') return await print(`${title}: nothing to do${where}: ${plan.because}`);
    return tell(`trunkline: ${title}: not changed${where}: ${plan.because}`);
  }
  const file = shown(plan.place.file);
  if (failed !== undefined) return tell(`trunkline: ${title}: not changed (${file}): ${failed}`);
  const lines = [`${title}: ${isDryRun ? 'would' : 'has'} ${ACTIONS[plan.kind][isDryRun ? 0 : 1]} ${file}`];
  if (plan.entry !== undefined && own !== undefined) lines.push(`  starts: ${[own.command, ...own.args].join(' ')}`);
  if (done?.program !== undefined) lines.push(`  changed with ${shown(done.program)}`);
  if (done?.backup !== undefined) lines.push(`  backup: ${shown(done.backup)}`);
  if (done?.isRecorded === false)
    lines.push(`  undo does not know of this: ${shown(clientChangesFile())} cannot be written`);
  if (!isDryRun) lines.push(`  Restart ${title}.`);
  await print(lines.join('\n'));
}

const ACTIONS = {
  add: [`add \`${OWN_NAME}\` to`, `a new entry \`${OWN_NAME}\` in`],
  replace: [`change \`${OWN_NAME}\` in`, `a changed entry \`${OWN_NAME}\` in`],
  remove: [`remove \`${OWN_NAME}\` from`, `no entry \`${OWN_NAME}\` any more in`],
} as const;

function toJson({ plan, done, failed }: Report) {
  const { client, title } = plan.client;
  const file = isChange(plan) ? plan.place.file : plan.file;
  const because = isChange(plan) ? failed : plan.because;
  const action = failed === undefined ? plan.kind : 'failed';
  return { client, title, file, action, because, backup: done?.backup, program: done?.program };
}

function undoneText(change: Change, undone: Undone): string {
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

function isChange(plan: Plan): plan is Extract<Plan, { content: string }> {
  return 'content' in plan;
}

function titleOf({ client }: Change): string {
  return clientNamed(client)?.title ?? client;
}

function isInstalledHere(client: Client): boolean {
  return isInstalled(client, thisSystem());
}

function planOptions() {
  return { system: thisSystem(), cliPath: programPath() };
}

function execution() {
  return { now: new Date(), runProgram };
}

/** Programs of clients answer in seconds; one that asks something must not stop us. */
const PROGRAM_TIMEOUT_MS = 30_000;

async function runProgram(file: string, args: readonly string[]): Promise<boolean> {
  const { execa } = await import('execa');
  const { exitCode } = await execa(file, [...args], {
    cwd: homedir(),
    reject: false,
    stdio: 'ignore',
    timeout: PROGRAM_TIMEOUT_MS,
  });
  return exitCode === 0;
}

/** The program that runs: `dist/cli.js`. */
function programPath(): string {
  return process.argv[1] ?? '';
}

/** Paths in the home folder begin with `~`. */
function shown(file: string): string {
  const home = homedir();
  return file.startsWith(home) && dirname(file) !== file ? `~${file.slice(home.length)}` : file;
}
