import { readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import type { GlobalOptions } from '../../../app/global-options.js';
import {
  checkEdited,
  editConfig,
  entriesIn,
  type NewEntry,
  takesRemoteServers,
} from '../../../config/edit/edit-config.js';
import { valuesInEnv } from '../../../config/resolve/env-file.js';
import { type Variables, variableNamesIn } from '../../../config/resolve/references.js';
import { errorMessage } from '../../../host/errors/error-text.js';
import { systemFault } from '../../../host/errors/file-error.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { thisSystem } from '../../../setup/clients/files/client-locations.js';
import { CLIENTS } from '../../../setup/clients/files/client-table.js';
import { findServers } from '../../../setup/clients/files/find-servers.js';
import type { ClientLocation, ClientSystem, FoundServers } from '../../../setup/clients/files/found-server.js';
import { isOurselves } from '../../../setup/clients/files/own-entry.js';
import { readServers } from '../../../setup/clients/files/read-servers.js';
import type { OpenedPath } from '../../../setup/clients/import/opened-paths.js';
import { type PlannedServer, planImport, type Verdict } from '../../../setup/clients/import/plan.js';
import { describeRun, variablesOf } from '../../../setup/clients/import/to-entry.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { OWN_FOLDER } from '../../../version.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { plural, printable } from '../../../wire/json/printable.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { printJson, tell } from '../../output.js';
import { openQuestions } from '../../questions.js';
import { lookOf, table } from '../../terminal.js';
import { type EditableConfig, openEditableConfig, saveEdit, whereToSet } from '../config/change-server.js';
import { copyKeptFiles, describeKept, keepingPlaces } from './kept-files.js';

interface ImportOptions {
  /** Name of a client, a file, or `-` for stdin. Absent for all clients. */
  from: string;
  /** Names of servers. Absent for all. */
  server: readonly string[];
  /** Whether the programs of the servers are confined. */
  sandbox: boolean;
  dryRun: true;
  yes: true;
}

export interface PreparedImport {
  readonly target: EditableConfig;
  readonly found: FoundServers;
  readonly plan: readonly PlannedServer[];
  readonly added: readonly PlannedServer[];
  /** Text of the configuration with the added servers. */
  readonly edited: string;
}

/** Finds the servers and plans the import of each. With `opensNamed`, confined servers may use the paths that their entries name. Writes nothing. */
export async function prepareImport(
  settings: GlobalOptions,
  { from, server: servers = [], sandbox: isConfined = false }: Partial<ImportOptions> = {},
  opensNamed = true,
): Promise<PreparedImport> {
  const target = openEditableConfig(settings);
  const system = thisSystem();
  const found = await serversFrom(from, system);
  requireNames(servers, found);
  const plan = planImport({
    system,
    found: found.servers,
    names: servers,
    secrets: target.secrets,
    env: process.env,
    isConfined,
    opensNamed,
    present: entriesIn(target.config.text ?? ''),
    takesRemote: takesRemoteServers(target.config.text ?? ''),
    isOurselves: (run) => isOurselves(run, join(OWN_FOLDER, 'dist', 'cli.js')),
    places: keepingPlaces(target.config.file),
    readEnvFile,
  });
  const added = plan.filter(({ entry }) => entry !== undefined);
  const edited = added.reduce((text, { key = '', entry = {}, comment }) => {
    return editConfig(text, target.config.file, { kind: 'add', key, entry, comment });
  }, target.config.text ?? '');
  if (added.length > 0) checkEdited(target.config, edited);
  return { target, found, plan, added, edited };
}

/** `trunkline import`: adds the servers of clients to the configuration. */
export async function importServers({ settings, options, isJson }: Invocation<ImportOptions>): Promise<number> {
  const prepared = await prepareImport(settings, options);
  const { target, added } = prepared;
  if (!isJson) reportPlan(prepared);
  // With `--json`, a program reads the output, and cannot answer questions.
  const isDryRun = options.dryRun || (isJson && !options.yes);
  const isWritten = added.length > 0 && !isDryRun && (options.yes || (await agrees(added.length, target)));
  if (isWritten) await withChangeLock(() => save(prepared));
  if (isJson) await printJson(toJson(prepared, isWritten));
  else if (isWritten) {
    tellWritten(added, target);
    tell(
      'Run `trunkline check`, which starts each of them once. Then remove them from your clients, or each tool exists twice.',
    );
  }
  return isWritten || isDryRun || added.length === 0 ? EXIT.ok : EXIT.failed;
}

export async function writeImport(prepared: PreparedImport): Promise<void> {
  const { target, added } = prepared;
  await withChangeLock(() => save(prepared));
  tellWritten(added, target);
}

/** Saves an import, the files of servers first, because a server that starts without its file would write a new one. */
function save({ target, added, edited }: PreparedImport): void {
  copyKeptFiles(added);
  saveEdit(target, edited);
}

function readEnvFile(file: string): Readonly<Record<string, string | undefined>> | undefined {
  try {
    return valuesInEnv(readFileSync(file, 'utf8'));
  } catch {
    // The printed plan reports the unreadable file.
    return undefined;
  }
}

function requireNames(names: readonly string[], { servers }: FoundServers): void {
  const known = servers.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const hint = hintFor(unknown, known, '`trunkline import --dry-run` lists all');
  throw new UsageError(`no client has a server \`${unknown}\``, hint);
}

const WORDS: Partial<Record<Verdict, string>> = { renamed: 'new', same: 'known' };

export function reportPlan({ plan, added, found: { unreadable }, target: { config, secrets } }: PreparedImport): void {
  const rows = plan.map(({ found, run, verdict, key, because, entry }) => {
    const renamed = verdict === 'renamed' ? ` as ${key}` : '';
    const disabled = entry?.disabled === true ? ', disabled' : '';
    const reason = because === '' ? '' : `: ${because}`;
    return [
      printable(found.name),
      found.place.scope === 'user' ? found.place.title : `${found.place.title} (${found.place.scope})`,
      printable(describeRun(found.run, run)),
      variablesOf(found.run).map(printable).join(' ') || '-',
      `${WORDS[verdict] ?? verdict}${renamed}${disabled}${reason}`,
    ];
  });
  const look = { ...lookOf(process.stderr), isColored: false };
  if (rows.length === 0) tell('No servers were found.');
  else tell(table([['NAME', 'CLIENT', 'RUNS', 'VARIABLES', 'VERDICT'], ...rows], look));
  for (const { place, because } of unreadable) tell(`${place.title}: ${place.file} cannot be read: ${because}`);
  for (const { key = '', kept } of added) {
    if (kept !== undefined) for (const line of describeKept(key, kept)) tell(line);
  }
  for (const { key = '', entry = {} } of added) {
    for (const line of describeVariables(entry, secrets.values)) tell(`${key}: ${line}`);
  }
  tellOpened(added);
  if (rows.length > 0) tell(`\n${added.length} of ${rows.length} would be added to ${config.file}.`);
}

/** Says what is open for servers that will be confined. Returns whether anything is. */
export function tellOpened(added: readonly PlannedServer[]): boolean {
  const lines = added.flatMap(({ key = '', opened = [] }) => describeOpened(opened).map((line) => `${key}: ${line}`));
  for (const line of lines) tell(line);
  return lines.length > 0;
}

async function agrees(count: number, { config }: EditableConfig): Promise<boolean> {
  const questions = await openQuestions();
  if (questions === undefined) {
    tell('Nothing was written, because Trunkline can ask only on a terminal. Add --yes to write without a question.');
    return false;
  }
  const question = `Add ${count === 1 ? 'it' : 'them'} to ${config.file}?`;
  const isAgreed = await questions.confirm(question, { byDefault: false });
  if (isAgreed !== true) tell('Nothing was written.');
  return isAgreed === true;
}

function tellWritten(added: readonly PlannedServer[], target: EditableConfig): void {
  if (added.length > 0) tell(`Added ${plural(added.length, 'server')} to ${target.config.file}.`);
  for (const { key, entry = {}, unset = [] } of added) {
    if (unset.length > 0) tell(`  ${key}: set ${unset.join(', ')} ${whereToSet(entry, target)}`);
  }
}

/**
 * A line for each variable and header of an entry: its value, or that it is a secret. An entry has no secrets itself, but
 * refers to them; `inFile` has the variables of the environment file.
 */
export function describeVariables(entry: NewEntry, inFile: Variables): string[] {
  const shown = (what: string, values: unknown) =>
    Object.entries(isRecord(values) ? values : {}).map(([name, value]) => {
      const text = String(value);
      const isSecret =
        text.includes('${secret:') || variableNamesIn([text]).some((used) => Object.hasOwn(inFile, used));
      return `it gets the ${what} ${printable(name)}${isSecret ? ', whose value is a secret' : `: ${printable(text)}`}`;
    });
  return [...shown('variable', entry.env), ...shown('header', entry.headers)];
}

/** A line for each file or folder of an entry that is open for a confined server. */
export function describeOpened(opened: readonly OpenedPath[]): string[] {
  return opened.map(({ path, access, because }) => {
    return `its sandbox opens ${printable(path)} for ${access === 'write' ? 'reading and writing' : 'reading'} (${because})`;
  });
}

/** Makes the output of `--json`, which has names of variables but never their values. */
export function toJson(
  { plan, found: { unreadable }, target: { config, secrets } }: PreparedImport,
  isWritten: boolean,
) {
  return {
    config: config.file,
    envFile: secrets.added.length > 0 ? secrets.file : null,
    written: isWritten,
    servers: plan.map(({ found, run, verdict, key, because, entry, kept, unset = [] }) => ({
      name: found.name,
      client: found.place.client,
      scope: found.place.scope,
      file: found.place.file,
      verdict,
      key: key ?? null,
      because: because === '' ? null : because,
      runs: describeRun(found.run, run),
      variables: variablesOf(found.run),
      unset,
      disabled: entry?.disabled === true,
      keeps: kept === undefined ? null : { variable: kept.variable, file: kept.file, earlier: kept.earlier },
    })),
    unreadable: unreadable.map(({ place, because }) => ({ client: place.client, file: place.file, because })),
  };
}

/** Finds the servers of all clients, of one client, of one file or of stdin (`-`). Throws a `UsageError` for text that cannot be read. */
export async function serversFrom(from: string | undefined, system: ClientSystem): Promise<FoundServers> {
  if (from === undefined) return await findServers(system);
  if (from === '-') return fromText(placeOf('stdin'), await readAll(process.stdin), 'stdin');
  if (CLIENTS.some(({ client }) => client === from)) {
    const { servers, unreadable } = await findServers(system);
    const isWanted = ({ place }: { readonly place: ClientLocation }) => place.client === from;
    return { servers: servers.filter(isWanted), unreadable: unreadable.filter(isWanted) };
  }
  const file = resolve(from);
  const text = textOf(file, from);
  // A file of a known client has that client's syntax of variables and its project folder.
  const known = (await findServers(system)).servers.filter(({ place }) => place.file === file);
  return known.length > 0 ? { servers: known, unreadable: [] } : fromText(placeOf(file), text, from);
}

function fromText(place: ClientLocation, text: string, shown: string): FoundServers {
  try {
    return { servers: readServers(place, text), unreadable: [] };
  } catch (cause) {
    const hint = 'name a file with `mcpServers` or the like';
    throw new UsageError(`${shown} cannot be imported: ${errorMessage(cause)}`, hint, { cause });
  }
}

function textOf(file: string, from: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (/[\\/.]/.test(from)) {
      throw new UsageError(`the file ${from} cannot be read: ${systemFault(cause).reason}`, 'correct --from', {
        cause,
      });
    }
    const names = CLIENTS.map(({ client }) => client);
    const hint = hintFor(from, names, `clients are ${names.join(', ')}`);
    throw new UsageError(`there is no client \`${from}\`, and no such file`, hint, { cause });
  }
}

/** Guesses the client of a file in an unusual location from the names of the file and its folder. */
function placeOf(file: string): ClientLocation {
  const name = basename(file);
  const folder = basename(dirname(file));
  const ofClient = (client: string, scope: ClientLocation['scope']) => {
    const { title, format, path } = CLIENTS.find((each) => each.client === client) ?? CLIENT_UNKNOWN;
    return { client, title, scope, file, format, path };
  };
  if (name === 'claude_desktop_config.json') return ofClient('claude-desktop', 'user');
  if (name === '.mcp.json') return ofClient('claude-code', 'project');
  if (folder === '.vscode') return ofClient('vscode', 'project');
  if (folder === '.cursor') return ofClient('cursor', 'project');
  return { ...CLIENT_UNKNOWN, client: 'file', title: name, scope: 'user', file };
}

const CLIENT_UNKNOWN = { title: '', format: 'json', path: ['mcpServers'] } as const;
