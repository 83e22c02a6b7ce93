import { homedir } from 'node:os';
import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import { CLIENTS, type Client } from '../clients/client-table.js';
import { isInstalled } from '../clients/client-target.js';
import { thisSystem } from '../clients/this-system.js';
import { userConfigFile } from '../config/find-config.js';
import type { PlannedServer } from '../import/plan.js';
import { tryServers } from './check.js';
import { registerAndTakeOut } from './client-changes.js';
import { clientsNamed } from './connect.js';
import { prepareImport, reportPlan, writeImport } from './import.js';
import { type InitQuestions, questionsOnTerminal } from './init-questions.js';
import { install } from './install.js';
import { tell } from './output.js';

export interface InitOptions {
  /** The names of the clients to register Trunkline with. Empty: all that are installed, or those that the user chooses. */
  readonly clients: readonly string[];
  readonly isDryRun: boolean;
  /** Asks nothing. */
  readonly isYes: boolean;
}

/**
 * `trunkline init`: imports the servers of all clients, installs and tries them, registers Trunkline with the clients, and
 * takes the servers that work out of them.
 */
export async function init(settings: GlobalOptions, options: InitOptions): Promise<number> {
  const questions = options.isYes || options.isDryRun ? undefined : await questionsOnTerminal();
  if (questions === undefined && !options.isYes && !options.isDryRun) {
    throw new UsageError('`trunkline init` asks questions, and this is no terminal', 'add --yes to answer all of them');
  }
  const prepared = await prepareImport(settings, { from: undefined, servers: [] });
  const { plan, place, added } = prepared;
  const known = plan.some(({ verdict }) => verdict === 'same');
  reportPlan(prepared);
  if (added.length === 0 && !known && place.config.text === undefined) {
    tell('Trunkline needs a server: `trunkline add NAME PACKAGE` adds one. Then run `trunkline init` again.');
    return EXIT.failed;
  }
  const clients = await chooseClients(options, questions);
  if (clients === undefined) return cancelled();
  tellIntention(added.length, clients);
  if (options.isDryRun) return EXIT.ok;
  if (questions !== undefined && !(await questions.confirm('Do this?'))) return cancelled();

  if (added.length > 0) writeImport(prepared);
  const configured = { ...settings, config: place.config.file };
  const enabled = added.filter(({ entry }) => entry?.disabled !== true).map(({ key = '' }) => key);
  if (enabled.length > 0) tell('\nInstalling the packages of these servers:');
  const installed = enabled.length > 0 ? await install(configured, enabled, { isJson: false }) : EXIT.ok;
  tell('\nStarting every server once:');
  const { exitCode, sound } = await tryServers(configured, [], { isJson: false });
  const taken = plan.filter((each) => isTaken(each, clients, sound)).map(({ found }) => found);
  tell('\nRegistering Trunkline:');
  const registered = await registerAndTakeOut(
    clients,
    taken,
    isUserConfig(place.config.file) ? undefined : place.config.file,
  );
  tellEnd(plan, sound, place.config.file);
  return Math.max(installed, exitCode, registered);
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
  questions: InitQuestions | undefined,
): Promise<readonly Client[] | undefined> {
  if (names.length > 0) return clientsNamed(names);
  const system = thisSystem();
  const here = CLIENTS.filter((client) => isInstalled(client, system));
  return questions === undefined || here.length === 0 ? here : await questions.chooseClients(here);
}

function tellIntention(added: number, clients: readonly Client[]): void {
  const names = clients.map(({ title }) => title).join(', ');
  tell(
    clients.length === 0
      ? '\nNo client was found on this machine: Trunkline would be registered nowhere. `trunkline connect CLIENT` does that later.'
      : `\nTrunkline imports ${added}, tries all, registers itself with ${names}, and takes the servers that work out of these clients. \`trunkline undo\` takes the changes of the clients back.`,
  );
}

/** A server that does not work stays where it is, as do the files that a project shares with others. */
function isTaken({ found, key = '', verdict }: PlannedServer, clients: readonly Client[], sound: readonly string[]) {
  const isOurs = verdict === 'new' || verdict === 'renamed' || verdict === 'same';
  const isChosen = clients.some(({ client }) => client === found.place.client);
  return isOurs && isChosen && found.place.scope !== 'project' && sound.includes(key);
}

function tellEnd(plan: readonly PlannedServer[], sound: readonly string[], file: string): void {
  const broken = plan.filter(({ key, entry }) => key !== undefined && entry?.disabled !== true && !sound.includes(key));
  if (broken.length > 0) {
    const names = [...new Set(broken.map(({ key }) => key))].join(', ');
    tell(
      `\n${names}: did not start, so the clients keep their own entries, too. See the reasons above; \`trunkline doctor\` looks further.`,
    );
  }
  const shared = new Set(
    plan.filter(({ found }) => found.place.scope === 'project').map(({ found }) => found.place.file),
  );
  for (const each of shared)
    tell(`\n${each} belongs to a project and was left as it is: its servers exist twice there.`);
  tell(
    `\nThe servers are in ${file}. Restart your clients. To take the changes of the clients back: \`trunkline undo\`.`,
  );
}
