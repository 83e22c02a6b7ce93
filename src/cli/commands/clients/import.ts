import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { thisSystem } from '../../../clients/files/client-locations.js';
import type { FoundServers } from '../../../clients/files/found-server.js';
import { isOurselves } from '../../../clients/files/own-entry.js';
import { type PlannedServer, planImport, type Verdict } from '../../../clients/import/plan.js';
import { describeRun, variablesOf } from '../../../clients/import/to-entry.js';
import { checkEdited } from '../../../config/edit/config-file.js';
import { editConfig, entriesIn } from '../../../config/edit/edit-config.js';
import { valuesInEnv } from '../../../config/file/env-file.js';
import { EXIT, UsageError } from '../../../errors/usage-error.js';
import { printable } from '../../../json/printable.js';
import { didYouMean, suggest } from '../../../json/suggest.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { OWN_FOLDER } from '../../../version.js';
import { printJson, tell } from '../../output.js';
import { openQuestions } from '../../questions.js';
import { table } from '../../table.js';
import { lookOf } from '../../terminal.js';
import { type EditPlace, openEditPlace, saveEdit, whereToSet } from '../config/edit-place.js';
import { serversFrom } from './import-sources.js';

export interface ImportOptions {
  /** The name of a client, a file, or `-` for stdin; all clients when absent. */
  readonly from: string | undefined;
  /** Names of servers; all when empty. */
  readonly servers: readonly string[];
  readonly isDryRun: boolean;
  readonly isJson: boolean;
  /** Writes without asking. */
  readonly isYes: boolean;
}

/** What an import would do. */
export interface PreparedImport {
  readonly place: EditPlace;
  readonly found: FoundServers;
  readonly plan: readonly PlannedServer[];
  /** The servers that are to be written. */
  readonly added: readonly PlannedServer[];
  /** The configuration with them. */
  readonly edited: string;
}

/** Finds the servers and decides what becomes of each. Writes nothing. */
export async function prepareImport(
  settings: GlobalOptions,
  { from, servers }: Pick<ImportOptions, 'from' | 'servers'>,
): Promise<PreparedImport> {
  const place = openEditPlace(settings);
  const system = thisSystem();
  const found = await serversFrom(from, system);
  requireNames(servers, found);
  const plan = planImport({
    ...{ system, found: found.servers, names: servers, secrets: place.secrets, env: process.env },
    present: entriesIn(place.config.text ?? ''),
    isOurselves: (run) => isOurselves(run, join(OWN_FOLDER, 'dist', 'cli.js')),
    readEnvFile,
  });
  const added = plan.filter(({ entry }) => entry !== undefined);
  const edited = added.reduce((text, { key = '', entry = {}, comment }) => {
    return editConfig(text, place.config.file, { kind: 'add', key, entry, comment });
  }, place.config.text ?? '');
  if (added.length > 0) checkEdited(place.config, edited);
  return { place, found, plan, added, edited };
}

/** `trunkline import`: takes the servers of other clients over into the configuration. */
export async function importServers(settings: GlobalOptions, options: ImportOptions): Promise<number> {
  const prepared = await prepareImport(settings, options);
  const { place, added, edited } = prepared;
  if (!options.isJson) reportPlan(prepared);
  // A program that reads JSON answers no question.
  const isDryRun = options.isDryRun || (options.isJson && !options.isYes);
  const isWritten = added.length > 0 && !isDryRun && (options.isYes || (await agrees(added.length, place)));
  if (isWritten) await withChangeLock(() => saveEdit(place, edited));
  if (options.isJson) await printJson(toJson(prepared, isWritten));
  else if (isWritten) {
    tellWritten(added, place);
    tell('`trunkline check` starts each of them once. Then remove them from your clients, or each tool exists twice.');
  }
  return isWritten || isDryRun || added.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Writes what was prepared, and says so. */
export async function writeImport({ place, added, edited }: PreparedImport): Promise<void> {
  await withChangeLock(() => saveEdit(place, edited));
  tellWritten(added, place);
}

function readEnvFile(file: string): Readonly<Record<string, string | undefined>> | undefined {
  try {
    return valuesInEnv(readFileSync(file, 'utf8'));
  } catch {
    // The plan says so.
    return undefined;
  }
}

function requireNames(names: readonly string[], { servers }: FoundServers): void {
  const known = servers.map(({ name }) => name);
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const nearest = suggest(unknown, known);
  throw new UsageError(
    `no client has a server \`${unknown}\``,
    nearest === undefined ? '`trunkline import --dry-run` lists all' : didYouMean(nearest),
  );
}

const WORDS: Readonly<Record<Verdict, string>> = {
  new: 'new',
  renamed: 'new',
  same: 'known',
  skipped: 'skipped',
  cannot: 'cannot',
};

/** Tells what becomes of each server that was found. */
export function reportPlan({ plan, added, found: { unreadable }, place: { config } }: PreparedImport): void {
  const rows = plan.map(({ found, run, verdict, key, because, entry }) => {
    const renamed = verdict === 'renamed' ? ` as ${key}` : '';
    const disabled = entry?.disabled === true ? ', disabled' : '';
    const reason = because === '' ? '' : `: ${because}`;
    return [
      printable(found.name),
      `${found.place.title} (${found.place.scope})`,
      printable(describeRun(found.run, run)),
      variablesOf(found.run).map(printable).join(' ') || '-',
      `${WORDS[verdict]}${renamed}${disabled}${reason}`,
    ];
  });
  if (rows.length === 0) tell('No servers were found.');
  else
    tell(
      table([['NAME', 'CLIENT', 'RUNS', 'VARIABLES', 'VERDICT'], ...rows], {
        ...lookOf(process.stderr),
        isColored: false,
      }),
    );
  for (const { place, because } of unreadable) tell(`${place.title}: ${place.file} cannot be read: ${because}`);
  if (rows.length > 0) tell(`\n${added.length} of ${rows.length} would be added to ${config.file}.`);
}

async function agrees(count: number, { config }: EditPlace): Promise<boolean> {
  const questions = await openQuestions();
  if (questions === undefined) {
    tell('Nothing was written, because nobody can be asked without a terminal. To add them without a question: --yes.');
    return false;
  }
  const question = `Add ${count === 1 ? 'it' : 'them'} to ${config.file}?`;
  const isAgreed = await questions.confirm(question, { byDefault: false });
  if (isAgreed !== true) tell('Nothing was written.');
  return isAgreed === true;
}

function tellWritten(added: readonly PlannedServer[], place: EditPlace): void {
  tell(`Added ${added.length} ${added.length === 1 ? 'server' : 'servers'} to ${place.config.file}.`);
  for (const { key, entry = {}, unset = [] } of added) {
    if (unset.length > 0) tell(`  ${key}: set ${unset.join(', ')} ${whereToSet(entry, place)}`);
  }
}

/** What `--json` prints. No values: names of variables only. */
export function toJson(
  { plan, found: { unreadable }, place: { config, secrets } }: PreparedImport,
  isWritten: boolean,
) {
  return {
    config: config.file,
    envFile: secrets.added.length > 0 ? secrets.file : null,
    written: isWritten,
    servers: plan.map(({ found, run, verdict, key, because, entry, unset = [] }) => ({
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
    })),
    unreadable: unreadable.map(({ place, because }) => ({ client: place.client, file: place.file, because })),
  };
}
