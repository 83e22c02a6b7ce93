import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import {
  changesToUndo,
  planConnect,
  planDisconnect,
  type Undone,
  undoChange,
} from '../../../clients/files/change-client-file.js';
import { type Change, ChangeJournal } from '../../../clients/files/change-journal.js';
import { isInstalled, thisSystem } from '../../../clients/files/client-locations.js';
import { CLIENTS, type Client, clientNamed } from '../../../clients/files/client-table.js';
import { type OwnCommand, ownCommand } from '../../../clients/files/own-entry.js';
import { findConfigFile } from '../../../config/file/find-config.js';
import { EXIT, UsageError } from '../../../errors/usage-error.js';
import { FileRefusal } from '../../../files/edit/parse-text.js';
import { hintFor } from '../../../json/suggest.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { clientChangesFile } from '../../../state/user-files.js';
import type { Invocation } from '../../command.js';
import { print, printJson, tell } from '../../output.js';
import { carryOutAll, execution, planAll, planOptions, programPath, shown } from './client-changes.js';

type ConnectInvocation = Invocation<{ all: boolean; dryRun: boolean }>;

/** `trunkline connect`: registers Trunkline with clients. */
export async function connect({ settings, words, options, isJson }: ConnectInvocation): Promise<number> {
  const { all: isAll = false, dryRun: isDryRun = false } = options;
  const clients = chosenClients('connect', words, isAll);
  const config = chosenConfig(settings.config);
  const own = ownCommand({ execPath: process.execPath, cliPath: programPath(), config });
  const code = await withChangeLock(
    async () => {
      const plans = await planAll(clients, (client) => {
        return planConnect(client, own, { ...planOptions(), isNamed: !isAll });
      });
      const wanted = isAll ? plans.filter(({ kind, client }) => kind !== 'refused' || isInstalledHere(client)) : plans;
      return await carryOutAll(wanted, own, { isDryRun, isJson });
    },
    { isDryRun },
  );
  if (!isJson) for (const remark of remarksOn(own, config)) tell(remark);
  return code;
}

/** `trunkline disconnect`: removes Trunkline from clients. */
export async function disconnect({ words, options, isJson }: ConnectInvocation): Promise<number> {
  const { all: isAll = false, dryRun: isDryRun = false } = options;
  const clients = chosenClients('disconnect', words, isAll);
  return await withChangeLock(
    async () => {
      const plans = await planAll(clients, (client) => planDisconnect(client, planOptions()));
      const wanted = isAll ? plans.filter(({ kind }) => kind !== 'unchanged') : plans;
      return await carryOutAll(wanted, undefined, { isDryRun, isJson });
    },
    { isDryRun },
  );
}

/** `trunkline undo`: takes back what the last command has changed, or the last command for each of these clients. */
export async function undo({ words, options: { all: isAll = false }, isJson }: ConnectInvocation): Promise<number> {
  const clients = isAll || words.length > 0 ? chosenClients('undo', words, isAll) : undefined;
  const journal = new ChangeJournal(clientChangesFile());
  const changes = await changesToUndo(
    journal,
    clients?.map(({ client }) => client),
  );
  const results: object[] = [];
  let code: number = EXIT.ok;
  for (const change of changes) {
    try {
      const undone = await withChangeLock(() => undoChange(change, { ...planOptions(), ...execution(), journal }));
      results.push({ ...factsOf(change), result: undone, because: null });
      if (!isJson) await print(undoneText(change, undone));
    } catch (error) {
      if (!(error instanceof FileRefusal)) throw error;
      results.push({ ...factsOf(change), result: 'failed', because: error.message });
      tell(`trunkline: ${titleOf(change)}: cannot undo the change of ${shown(change.file)}: ${error.message}`);
      code = EXIT.failed;
    }
  }
  if (isJson) await printJson({ changes: results });
  else if (changes.length === 0) await print('There is nothing to undo.');
  return code;
}

function factsOf(change: Change): object {
  return { client: change.client, title: titleOf(change), file: change.file };
}

function chosenClients(
  command: 'connect' | 'disconnect' | 'undo',
  names: readonly string[],
  isAll: boolean,
): readonly Client[] {
  if (isAll && names.length > 0) throw new UsageError('`--all` means every client', 'leave out the names, or `--all`');
  if (isAll) return CLIENTS;
  if (names.length === 0) {
    const here = CLIENTS.filter(isInstalledHere).map(({ client }) => client);
    const hint = here.length === 0 ? CLIENTS.map(({ client }) => client).join(', ') : here.join(', ');
    const which = here.length === 0 ? 'Trunkline knows' : 'installed here are';
    throw new UsageError(`\`trunkline ${command}\` needs the name of a client, or \`--all\``, `${which} ${hint}`);
  }
  return clientsNamed(names);
}

/** The clients with these names. Throws a `UsageError` for a name that no client has. */
export function clientsNamed(names: readonly string[]): readonly Client[] {
  return [...new Set(names)].map((name) => {
    const client = clientNamed(name.toLowerCase());
    if (client !== undefined) return client;
    const known = CLIENTS.map((each) => each.client);
    throw new UsageError(`there is no client \`${name}\``, hintFor(name, known, `Trunkline knows ${known.join(', ')}`));
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

function titleOf({ client }: Change): string {
  return clientNamed(client)?.title ?? client;
}

function isInstalledHere(client: Client): boolean {
  return isInstalled(client, thisSystem());
}
