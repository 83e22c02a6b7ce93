import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname } from 'node:path';
import { checkEdited, editConfig, entriesIn, takesRemoteServers } from '../../../config/edit/edit-config.js';
import { ServerFault } from '../../../config/file/config-error.js';
import { parsePackage } from '../../../config/resolve/package-bin.js';
import { serverKeyFault, usableServerKey } from '../../../config/schema/server-key.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { yamlLines } from '../../../host/files/edit/edit-yaml.js';
import { type KeptFile, keepFile } from '../../../setup/clients/import/kept-file.js';
import { folderOfKeptFile, type OpenedPath, openedPaths } from '../../../setup/clients/import/opened-paths.js';
import { NEEDS_SERVERS } from '../../../setup/clients/import/plan.js';
import {
  fetchServer,
  isRegistryName,
  packageKey,
  RegistryError,
  type RegistryRun,
  runFromRegistry,
} from '../../../setup/clients/import/registry.js';
import { CannotImport, loginRemark, NO_ARGUMENTS, type Run, remoteRun } from '../../../setup/clients/import/run.js';
import { toEntry } from '../../../setup/clients/import/to-entry.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { didYouMean } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { print, printJson, tell } from '../../output.js';
import { describeOpened, describeVariables } from '../clients/import.js';
import { describeNewFile, keepingPlaces } from '../clients/kept-files.js';
import { openEditableConfig, saveEdit, whereToSet } from '../config/change-server.js';

interface AddOptions {
  /** Each `NAME=VALUE`, or `NAME` for a variable of the environment. */
  env: readonly string[];
  /** Each `Name: value`. */
  header: readonly string[];
  sandbox: true;
  dryRun: true;
}

/** `trunkline add`: adds one server to the configuration. */
export async function add(invocation: Invocation<AddOptions>): Promise<number> {
  const { settings, options, isJson } = invocation;
  const isDryRun = options.dryRun === true;
  const { wanted, run, secretVariables } = await read(invocation).catch(orUsageError);
  return await withChangeLock(
    async () => {
      const target = openEditableConfig(settings);
      const { config, secrets } = target;
      if ('url' in run.program && !takesRemoteServers(config.text ?? '')) throw new CannotImport(NEEDS_SERVERS);
      const key = checkedKey(wanted, Object.keys(entriesIn(config.text ?? '')));
      const isConfined = options.sandbox === true;
      const kept = keepFile(run, key, keepingPlaces(config.file));
      const opened = isConfined ? openedFor(run, kept) : [];
      const more = { secretVariables, isConfined, kept, opened };
      const { entry, unset } = toEntry(run, key, { secrets, env: process.env, ...more });
      const edited = editConfig(config.text ?? '', config.file, { kind: 'add', key, entry });
      checkEdited(config, edited);
      const facts = {
        configFile: config.file,
        envFile: secrets.added.length > 0 ? secrets.file : null,
        written: !isDryRun,
        server: key,
        entry,
        unset,
      };
      if (!isDryRun) {
        if (kept !== undefined) mkdirSync(dirname(kept.file), { recursive: true, mode: 0o700 });
        saveEdit(target, edited);
      }
      if (isJson) {
        await printJson(facts);
        return EXIT.ok;
      }
      if (isDryRun) {
        tell(`This would be added to ${config.file}:`);
        await print(yamlLines({ [key]: entry }, { indent: 2 }).join('\n'));
        if (secrets.added.length > 0)
          tell(`The values of ${secrets.added.join(', ')} would be written to ${secrets.file}.`);
        return EXIT.ok;
      }
      const tries = 'url' in run.program ? 'connects to it' : 'starts it';
      tell(`Added ${key} to ${config.file}. \`trunkline check ${key}\` ${tries} once.`);
      for (const line of describeVariables(entry, secrets.values)) tell(`  ${line}`);
      if (kept !== undefined) for (const line of describeNewFile(kept)) tell(`  ${line}`);
      for (const line of describeOpened(opened)) tell(`  ${line}`);
      const remark = loginRemark(run);
      if (remark !== '') tell(`  ${remark}`);
      if (unset.length > 0) tell(`  set ${unset.join(', ')} ${whereToSet(entry, target)}`);
      return EXIT.ok;
    },
    { isDryRun },
  ).catch(orUsageError);
}

/** The paths that a confined server may use because its entry names them. */
function openedFor(run: Run, kept: KeptFile | undefined): OpenedPath[] {
  const home = homedir();
  const named = openedPaths(run, { home, env: process.env });
  return kept === undefined ? named : [folderOfKeptFile(kept, home), ...named];
}

const HOW_REMOTE = 'write `trunkline add NAME URL --header "Name: value"`';
const HOW = 'write `trunkline add NAME PACKAGE` or `trunkline add NAME -- COMMAND ARGS…`';

/** Reads `NAME -- COMMAND`, `NAME URL`, or `[NAME] PACKAGE`, which may be a name of the registry, with arguments after `--`. */
async function read({
  words,
  behind: rest,
  options: { env: pairs = [], header: lines = [] },
}: Invocation<AddOptions>): Promise<RegistryRun & { readonly wanted: string }> {
  const [first, second, ...excess] = words.slice(0, words.length - (rest?.length ?? 0));
  if (first === undefined || excess.length > 0)
    throw new UsageError('`trunkline add` needs a name and what to run', HOW);
  const env = Object.fromEntries(pairs.map(variable));
  const isCommand = second === undefined && rest !== undefined && !/[/@]/.test(first);
  if (isCommand) {
    const [command, ...args] = rest;
    if (command === undefined) throw new UsageError('there is no command after `--`', HOW);
    if (command.startsWith('-')) {
      const hint = `for arguments of the package \`${first}\`, write \`trunkline add NAME ${first} -- …\``;
      throw new UsageError(`\`${command}\` after \`--\` is no command`, hint);
    }
    return { wanted: first, run: { program: { command }, args, env }, secretVariables: [] };
  }
  const source = second ?? first;
  const args = rest ?? [];
  const isRemote = /^https?:\/\//i.test(source);
  if (lines.length > 0 && !isRemote) throw new UsageError('`--header` is for a server at an address', HOW_REMOTE);
  if (isRemote) {
    if (second === undefined) throw new UsageError('a server at an address needs a name', HOW_REMOTE);
    const headers = Object.fromEntries(lines.map(header));
    const remote = remoteRun({ kind: 'remote', url: source, transport: 'http', headers }, (text) => text);
    if (args.length > 0) throw new CannotImport(NO_ARGUMENTS);
    if (pairs.length > 0) throw new CannotImport('it is behind a URL, so it has no variables: use `--header`');
    return { wanted: first, run: remote, secretVariables: [] };
  }
  if (isRegistryName(source)) {
    const address = process.env.TRUNKLINE_REGISTRY_URL || undefined;
    const found = runFromRegistry(await fetchServer(source, address), { env, args });
    return { wanted: second === undefined ? packageKey(source) : first, ...found };
  }
  const { name, version } = packageParts(source);
  const program = { package: name, ...(version && { version }) };
  const wanted = second === undefined ? packageKey(name) : first;
  return { wanted, run: { program, args, env }, secretVariables: [] };
}

function variable(pair: string): [string, string] {
  const [name = '', value] = pair.split(/=(.*)/s, 2);
  if (!/^[A-Za-z_]\w*$/.test(name)) {
    throw new UsageError('`--env` needs the name of a variable', 'write `--env NAME=VALUE`, or `--env NAME`');
  }
  return [name, value ?? `\${${name}}`];
}

function header(line: string): [string, string] {
  const [, name, value] = /^([^\s:]+):\s*(.*?)\s*$/s.exec(line) ?? [];
  if (name === undefined || value === undefined || value === '')
    throw new UsageError('`--header` needs the name and the value of a header', HOW_REMOTE);
  return [name, value];
}

function packageParts(spec: string) {
  try {
    return parsePackage(spec, spec);
  } catch (error) {
    if (!(error instanceof ServerFault)) throw error;
    throw new UsageError(error.message, HOW);
  }
}

function checkedKey(key: string, present: readonly string[]): string {
  const fault = serverKeyFault(key);
  if (fault !== undefined) {
    const usable = usableServerKey(key);
    throw new UsageError(`\`${key}\`: ${fault}`, usable === undefined ? HOW : didYouMean(usable));
  }
  if (!present.some((other) => other.toLowerCase() === key.toLowerCase())) return key;
  throw new UsageError(
    `there is a server \`${key}\` already`,
    `remove it with \`trunkline remove ${key}\`, or choose another name: \`trunkline add NAME …\``,
  );
}

function orUsageError(error: unknown): never {
  if (error instanceof CannotImport)
    throw new UsageError(`the server cannot be added: ${error.message}`, 'see `trunkline add --help`');
  if (error instanceof RegistryError) throw new UsageError(error.message, error.hint, { cause: error });
  throw error;
}
