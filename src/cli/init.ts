import { homedir } from 'node:os';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import { CLIENTS, type Client } from '../clients/client-table.js';
import { isInstalled } from '../clients/client-target.js';
import type { ClientPlace } from '../clients/found-server.js';
import { thisSystem } from '../clients/this-system.js';
import { userConfigFile } from '../config/find-config.js';
import type { PlannedServer } from '../import/plan.js';
import { tryServers } from './check.js';
import { registerAndTakeOut } from './client-changes.js';
import { clientsNamed } from './connect.js';
import { prepareImport, reportPlan, toJson, writeImport } from './import.js';
import { InitReport } from './init-report.js';
import { install } from './install.js';
import { tell } from './output.js';
import { openQuestions, type Questions } from './questions.js';

export interface InitOptions {
  /** The names of the clients to register Trunkline with. Empty: all that are installed, or those that the user chooses. */
  readonly clients: readonly string[];
  readonly isDryRun: boolean;
  /** Asks nothing. */
  readonly isYes: boolean;
  readonly isJson: boolean;
}

/**
 * `trunkline init`: imports the servers of all clients, installs and tries them, registers Trunkline with the clients, and
 * removes from the clients the servers that work.
 */
export async function init(settings: GlobalOptions, options: InitOptions): Promise<number> {
  const { isDryRun, isJson } = options;
  const mustAsk = !options.isYes && !isDryRun;
  // A program that reads JSON answers no question.
  const questions = mustAsk && !isJson ? await openQuestions() : undefined;
  if (mustAsk && questions === undefined) {
    const because = isJson ? 'a program that reads JSON answers none' : 'this is no terminal';
    throw new UsageError(`\`trunkline init\` asks questions, and ${because}`, 'add --yes to answer all of them');
  }
  const report = new InitReport(isJson);
  const prepared = await prepareImport(settings, { from: undefined, servers: [] });
  const { plan, place, added } = prepared;
  const known = plan.some(({ verdict }) => verdict === 'same');
  reportPlan(prepared);
  if (added.length === 0 && !known && place.config.text === undefined) {
    tell('Trunkline needs a server: `trunkline add NAME PACKAGE` adds one. Then run `trunkline init` again.');
    await report.print({ dryRun: isDryRun, clients: [], import: toJson(prepared, false) });
    return EXIT.failed;
  }
  const clients = await chooseClients(options, questions);
  if (clients === undefined) return cancelled();
  tellIntention(added.length, clients);
  const chosen = clients.map(({ client }) => client);
  if (isDryRun) {
    await report.print({ dryRun: true, clients: chosen, import: toJson(prepared, false) });
    return EXIT.ok;
  }
  if (questions !== undefined && !(await questions.confirm('Do this?', { byDefault: true }))) return cancelled();

  if (added.length > 0) writeImport(prepared);
  const configured = { ...settings, config: place.config.file };
  const enabled = added.filter(({ entry }) => entry?.disabled !== true).map(({ key = '' }) => key);
  if (enabled.length > 0) tell('\nInstalling the packages of these servers:');
  // Starting a server whose package failed installs it again, and reports the failure.
  const installed =
    enabled.length > 0
      ? await install(configured, enabled, { ...report.step('install'), reportsFaults: false })
      : EXIT.ok;
  // A signal ends the step that runs; nothing may follow it.
  if (isInterrupted(installed)) return installed;
  tell('\nStarting every server once:');
  const { exitCode, sound } = await tryServers(configured, [], report.step('check'));
  if (isInterrupted(exitCode)) return exitCode;
  const taken = plan.filter((each) => isTaken(each, clients, sound)).map(({ found }) => found);
  tell('\nRegistering Trunkline:');
  const registered = await registerAndTakeOut(clients, taken, {
    config: isUserConfig(place.config.file) ? undefined : place.config.file,
    ...report.step('connect'),
  });
  tellEnd(plan, sound, place.config.file);
  await report.print({ dryRun: false, clients: chosen, import: toJson(prepared, added.length > 0) });
  return Math.max(installed, exitCode, registered);
}

/** Whether a command was ended by a signal. */
function isInterrupted(exitCode: number): boolean {
  return exitCode > 128;
}

/** Whether clients find this configuration without being told. */
function isUserConfig(file: string): boolean {
  const { env, platform } = process;
  return file === userConfigFile({ env, home: homedir(), platform });
}

function cancelled(): number {
  tell('Nothing was changed.');
  return EXIT.failed;
}

async function chooseClients(
  { clients: names }: InitOptions,
  questions: Questions | undefined,
): Promise<readonly Client[] | undefined> {
  if (names.length > 0) return clientsNamed(names);
  const system = thisSystem();
  const here = CLIENTS.filter((client) => isInstalled(client, system));
  if (questions === undefined || here.length === 0) return here;
  const choices = here.map((client) => ({ value: client, label: client.title }));
  return await questions.choose('Register Trunkline with which clients? (space: choose, enter: go on)', choices);
}

function tellIntention(added: number, clients: readonly Client[]): void {
  const names = clients.map(({ title }) => title).join(', ');
  tell(
    clients.length === 0
      ? '\nNo client was found on this machine: Trunkline would be registered nowhere. `trunkline connect CLIENT` does that later.'
      : `\nTrunkline imports ${added} ${added === 1 ? 'server' : 'servers'}, starts each one once, registers itself with ${names}, and removes from these clients the servers that work. \`trunkline undo\` takes the changes of the clients back.`,
  );
}

/** A server that does not work stays where it is, as do extensions and the files that a project shares with others. */
function isTaken({ found, key = '', verdict }: PlannedServer, clients: readonly Client[], sound: readonly string[]) {
  const isOurs = verdict === 'new' || verdict === 'renamed' || verdict === 'same';
  const isChosen = clients.some(({ client }) => client === found.place.client);
  return isOurs && isChosen && isWritten(found.place) && sound.includes(key);
}

function isWritten({ scope }: ClientPlace): boolean {
  return scope === 'user' || scope === 'local';
}

function tellEnd(plan: readonly PlannedServer[], sound: readonly string[], file: string): void {
  const broken = plan.filter(({ key, entry }) => key !== undefined && entry?.disabled !== true && !sound.includes(key));
  if (broken.length > 0) {
    const names = [...new Set(broken.map(({ key }) => key))].join(', ');
    tell(
      `\n${names}: did not start, so the clients keep their own entries, too. The reasons are above; \`trunkline doctor\` looks further.\nCorrect the entries in ${file}; \`trunkline check NAME\` tries one. Then \`trunkline doctor --fix\` removes them from the clients. To give one up: \`trunkline remove NAME\`.`,
    );
  }
  const shared = new Set(
    plan.filter(({ found }) => found.place.scope === 'project').map(({ found }) => found.place.file),
  );
  for (const each of shared)
    tell(`\n${each} belongs to a project and was left as it is: its servers exist twice there.`);
  const extensions = plan.filter(({ found, key }) => found.place.scope === 'extension' && key !== undefined);
  if (extensions.length > 0) {
    const names = extensions.map(({ found }) => found.name).join(', ');
    tell(`\nDisable these extensions in Claude Desktop (Settings, Extensions), or their tools exist twice: ${names}.`);
  }
  tell(
    `\nThe servers are in ${file}. Restart your clients. To take the changes of the clients back: \`trunkline undo\`.`,
  );
}
