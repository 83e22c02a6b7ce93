import { homedir } from 'node:os';
import {
  type CarriedOut,
  carryOut,
  type Plan,
  planConnect,
  planTakeOut,
} from '../../../clients/files/change-client-file.js';
import { ChangeJournal } from '../../../clients/files/change-journal.js';
import { thisSystem } from '../../../clients/files/client-locations.js';
import type { Client } from '../../../clients/files/client-table.js';
import type { FoundServer } from '../../../clients/files/found-server.js';
import { type OwnCommand, ownCommand } from '../../../clients/files/own-entry.js';
import { EXIT } from '../../../errors/usage-error.js';
import { FileRefusal } from '../../../files/edit/parse-text.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { clientChangesFile } from '../../../state/user-files.js';
import { type EmitJson, print, printJson, tell, withoutHome } from '../../output.js';

/** Plans the changes of each client. */
export async function planAll(clients: readonly Client[], plan: (client: Client) => Promise<Plan[]>): Promise<Plan[]> {
  const plans: Plan[] = [];
  for (const client of clients) plans.push(...(await plan(client)));
  return plans;
}

/** Registers Trunkline with clients and takes these entries out of them. One undo takes both back. Returns the exit code. */
export async function registerAndTakeOut(
  clients: readonly Client[],
  taken: readonly FoundServer[],
  { config, isJson, emit }: RegisterOptions,
): Promise<number> {
  return await withChangeLock(async () => {
    const own = ownCommand({ execPath: process.execPath, cliPath: programPath(), config });
    const options = { isDryRun: false, isJson, emit, run: new Date().toISOString(), tellsRestart: false };
    const toAdd = await planAll(clients, (client) => planConnect(client, own, { ...planOptions(), isNamed: true }));
    const registered = await carryOutAll(toAdd, own, options);
    if (own.warning !== undefined) tell(`warning: ${own.warning}`);
    // A client without Trunkline keeps its servers.
    const refused = new Set(toAdd.flatMap(({ kind, client }) => (kind === 'refused' ? [client.client] : [])));
    const toRemove = await planTakeOut(
      taken.filter(({ place }) => !refused.has(place.client)),
      thisSystem(),
    );
    const removed = toRemove.length === 0 ? EXIT.ok : await carryOutAll(toRemove, undefined, options);
    return Math.max(registered, removed);
  });
}

/** Takes servers out of their clients. One undo takes back all changes of one `run`. Throws if that cannot be done. */
export async function takeOutOfClients(servers: readonly FoundServer[], run: string): Promise<void> {
  const journal = new ChangeJournal(clientChangesFile());
  await withChangeLock(async () => {
    for (const plan of await planTakeOut(servers, thisSystem())) {
      if (!isChange(plan)) throw new FileRefusal(plan.because);
      const { isRecorded } = await carryOut(plan, { system: thisSystem(), ...execution(), journal, run });
      if (!isRecorded) tell(`undo does not know of this: ${shown(clientChangesFile())} cannot be written`);
    }
  });
}

/** Carries plans out one after the other, and reports each. Returns the exit code. The caller holds the change lock. */
export async function carryOutAll(
  plans: readonly Plan[],
  own: OwnCommand | undefined,
  { isDryRun, isJson, emit = printJson, run = new Date().toISOString(), tellsRestart = !isDryRun }: CarryOutAllOptions,
): Promise<number> {
  const journal = new ChangeJournal(clientChangesFile());
  const options = { ...planOptions(), ...execution(), journal, run };
  const reports: Report[] = [];
  for (const plan of plans) {
    const report = isDryRun || !isChange(plan) ? { plan } : await attempt(plan);
    reports.push(report);
    if (!isJson) await tellReport(report, own, { isDryRun, tellsRestart });
  }
  if (isJson) await emit({ dryRun: isDryRun, changes: reports.map(toJson) });
  else if (plans.length === 0) await print('No client needs a change.');
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

export interface RegisterOptions {
  /** The configuration for the clients; the one of the user when absent. */
  readonly config: string | undefined;
  readonly isJson: boolean;
  readonly emit: EmitJson;
}

export interface CarryOutAllOptions {
  readonly isDryRun: boolean;
  readonly isJson: boolean;
  readonly emit?: EmitJson;
  /** The name of this run; a new one by default. One undo takes back all changes of one run. */
  readonly run?: string;
  /** Whether each change says that the client has to be restarted; by default it does. */
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
    if (plan.kind === 'unchanged') return await print(`${title}: nothing to do${where}: ${plan.because}`);
    return tell(`trunkline: ${title}: not changed${where}: ${plan.because}`);
  }
  const file = shown(plan.place.file);
  if (failed !== undefined) return tell(`trunkline: ${title}: not changed (${file}): ${failed}`);
  const names = plan.entries.map(({ name }) => `\`${name}\``).join(', ');
  const [would, has] = ACTIONS[plan.kind];
  const lines = [`${title}: ${isDryRun ? `would ${would(names)}` : `has ${has(names)}`} ${file}`];
  if (plan.entry !== undefined && own !== undefined) lines.push(`  starts: ${[own.command, ...own.args].join(' ')}`);
  if (done?.program !== undefined) lines.push(`  changed with ${shown(done.program)}`);
  if (done?.backup !== undefined) lines.push(`  backup: ${shown(done.backup)}`);
  if (done?.isRecorded === false)
    lines.push(`  undo does not know of this: ${shown(clientChangesFile())} cannot be written`);
  if (tellsRestart) lines.push(`  Restart ${title}.`);
  await print(lines.join('\n'));
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

export function planOptions() {
  return { system: thisSystem(), cliPath: programPath() };
}

export function execution() {
  return { now: new Date(), runProgram };
}

/** Programs of clients answer in seconds. The limit ends one that waits for input. */
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
export function programPath(): string {
  return process.argv[1] ?? '';
}

/** Paths in the home folder begin with `~`. */
export function shown(file: string): string {
  return withoutHome(file, homedir());
}
