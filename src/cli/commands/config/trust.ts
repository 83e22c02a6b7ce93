import { homedir } from 'node:os';
import { dirname, resolve } from 'node:path';
import { type CheckedFile, checkFile, type WrittenServer } from '../../../config/file/check-file.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation, currentFolder, findProjectFile, readConfigText } from '../../../config/file/find-config.js';
import { parseYaml } from '../../../config/file/yaml-source.js';
import { foldedKey } from '../../../config/resolve/config.js';
import { secretNamesIn, textsOfEntry, variableNamesIn } from '../../../config/resolve/references.js';
import { EXIT, HintedError, UsageError } from '../../../host/errors/usage-error.js';
import { realPath, replaceFile } from '../../../host/files/whole-file.js';
import { withChangeLock } from '../../../state/change-lock.js';
import {
  readTrusted,
  TrustedFileError,
  type TrustedProject,
  trustedList,
  trustedProject,
} from '../../../state/trusted-projects.js';
import { trustedFile } from '../../../state/user-files.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { plural, printable, quotedPath } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { difference } from '../../difference.js';
import { answer, note, print, printJson, tell } from '../../output.js';
import { openQuestions } from '../../questions.js';

type TrustOptions = { yes: true; remove: true; list: true };

/**
 * `trunkline trust`: shows what the configuration file of a project would run, asks, and keeps the text that was shown. With `--remove`, takes
 * that back; with `--list`, lists the projects.
 */
export async function trust(invocation: Invocation<TrustOptions>): Promise<number> {
  const { options, words, isJson } = invocation;
  const [named] = words;
  if (options.list && (options.remove || options.yes || named !== undefined))
    throw new UsageError('`--list` lists all projects, and takes no folder and no other option', 'leave them out');
  if (options.list) return await list(isJson);
  const folder = named === undefined ? currentFolder() : resolve(named);
  return options.remove ? await remove(folder, isJson) : await accept(folder, invocation);
}

async function accept(folder: string, { settings, options, isJson }: Invocation<TrustOptions>): Promise<number> {
  const file = fileAround(folder);
  const own = ownFile(settings.config);
  if (own !== undefined && realPath(own.file) === realPath(file))
    throw new UsageError(`${file} is your own configuration, which needs no trust`, 'name the folder of a project');
  // From here on, only this text counts: another one that comes into the file while the person reads was not shown.
  const text = readConfigText(file);
  const checked = checkFile(text, file, own?.checked.shared);
  const known = trusted().find((project) => project.file === file);
  const change = known === undefined ? 'new' : known.text === text ? null : 'changed';
  const facts = { file, change, servers: checked.servers.map(({ key }) => key), disabled: checked.disabled };
  if (change === null)
    return await answer(isJson, { ...facts, state: 'trusted' }, () => `${printable(file)} is trusted as it is.`);
  if (!isJson) await print(describe(file, text, known, checked, own?.checked).map(printable).join('\n'));
  const question = `Trust ${file} as shown, so that clients in its folder run its servers?`;
  const isYes = options.yes ?? (isJson ? undefined : await ask(printable(question)));
  if (isYes !== true) {
    if (isYes === undefined && !isJson)
      tell('Nothing was trusted, because there was no answer. Without a terminal, --yes trusts without a question.');
    if (isJson) await printJson({ ...facts, state: 'not trusted' });
    return EXIT.failed;
  }
  await changeList((projects) => [...projects.filter((each) => each.file !== file), trustedProject(file, text)]);
  if (own === undefined)
    tell('You have no configuration of your own, beside which the project would stand: `trunkline init` makes one.');
  if (isJson) await printJson({ ...facts, state: 'trusted' });
  else note(`Trusted. Clients that run in ${printable(dirname(file))} see its servers within two seconds.`);
  return EXIT.ok;
}

async function ask(question: string): Promise<boolean | undefined> {
  return await (await openQuestions())?.confirm(question, { byDefault: false });
}

async function remove(folder: string, isJson: boolean): Promise<number> {
  // The folder may be gone, or its file.
  const found = findProjectFile(folder, homedir());
  const folders = [folder, realPath(folder)];
  const isMeant = ({ file }: TrustedProject) => file === found || folders.includes(dirname(file));
  const removed = trusted().filter(isMeant);
  if (removed.length > 0) await changeList((projects) => projects.filter((project) => !isMeant(project)));
  const files = removed.map(({ file }) => file);
  const said = files.length === 0 ? `No trusted project is in ${folder}` : `No longer trusted: ${files.join(', ')}`;
  return await answer(
    isJson,
    { removed: files },
    () => `${printable(said)}.`,
    files.length === 0 ? EXIT.failed : EXIT.ok,
  );
}

async function list(isJson: boolean): Promise<number> {
  const projects = trusted().map(({ file, text }) => ({ file, state: stateOf(file, text) }));
  const lines = projects.map(({ file, state }) => printable(state === 'trusted' ? file : `${file} (${state})`));
  if (isJson) await printJson({ projects });
  else await print(lines.length === 0 ? 'No project is trusted.' : lines.join('\n'));
  return EXIT.ok;
}

function stateOf(file: string, text: string): 'trusted' | 'changed' | 'missing' {
  try {
    return readConfigText(file) === text ? 'trusted' : 'changed';
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.code === 'config-not-found' ? 'missing' : 'changed';
  }
}

function fileAround(folder: string): string {
  const home = homedir();
  const file = findProjectFile(folder, home);
  if (file !== undefined) return file;
  if (realPath(folder) === realPath(home))
    throw new UsageError(
      'a file in the home folder is no project, because it would be about every folder below',
      `put your own servers into your configuration, or name the folder of a project`,
    );
  throw new UsageError(
    `there is no trunkline.yaml in ${folder}, or above it in the same repository`,
    'run the command in the folder of the project, or name the folder',
  );
}

/** The user's own file; `undefined` if there is none, or if it cannot be used, which other commands report. */
function ownFile(config: string | undefined): { readonly file: string; readonly checked: CheckedFile } | undefined {
  try {
    const { file } = new ConfigLocation({ config, searchesFolder: false });
    return { file, checked: checkFile(readConfigText(file), file) };
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}

/** Says what changes with the trust: the text, or its differences to the text that was trusted, and what would run. */
function describe(
  file: string,
  text: string,
  known: TrustedProject | undefined,
  checked: CheckedFile,
  own: CheckedFile | undefined,
): string[] {
  const linesOf = (whole: string) => whole.replace(/\n$/, '').split('\n');
  const lines =
    known === undefined
      ? linesOf(text).map((line) => `    ${line}`)
      : difference(linesOf(known.text), linesOf(text)).map(({ sign, text: line }) => `  ${sign} ${line}`);
  const head = known === undefined ? `${file}:` : `${file} has changed since it was trusted (- before, + now):`;
  const ownKeys = new Map(
    (own?.servers.map(({ key }) => key) ?? []).concat(own?.disabled ?? []).map((key) => [foldedKey(key), key]),
  );
  const runs = checked.servers.flatMap((server) => describeServer(server, ownKeys.get(foldedKey(server.key))));
  const off = checked.disabled
    .filter((key) => ownKeys.has(foldedKey(key)))
    .map((key) => `  ${key}: switches off your server ${ownKeys.get(foldedKey(key))}`);
  const texts = checked.servers.flatMap(textsOfEntry);
  const gets = [[variableNamesIn(texts), 'variable'] as const, [secretNamesIn(texts), 'secret'] as const].flatMap(
    ([names, noun]) => (names.length === 0 ? [] : [`${plural(names.length, noun)} of yours (${names.join(', ')})`]),
  );
  const unused = unusedKeys(text, file);
  return [
    head,
    ...lines,
    '',
    `Clients in ${dirname(file)} would get:`,
    ...runs,
    ...off,
    ...(gets.length === 0 ? [] : [`They get ${gets.join(' and ')}.`]),
    ...(unused.length === 0 ? [] : [`Not used of a project's file: ${unused.join(', ')}.`]),
    'A change of this file runs only when it is trusted again. Programs and environment files in the folder may change without a question.',
  ];
}

function describeServer(server: WrittenServer, replaced: string | undefined): string[] {
  const { key, settings, url, command = '', package: name, args = [], headersCommand, cwd, envFile } = server;
  const words = [name === undefined ? command : name, ...args].map((word) => quotedPath(word, 'linux')).join(' ');
  const runs =
    url !== undefined ? `connects to ${url}` : name === undefined ? `runs ${words}` : `installs and runs ${words}`;
  const facts = [
    runs,
    cwd !== undefined && `in ${cwd}`,
    envFile !== undefined && `with the variables in ${envFile}`,
    url === undefined && (settings.sandbox === false ? 'with all that you may do' : 'in a sandbox'),
    replaced !== undefined && `in place of your server ${replaced}`,
  ].filter((fact) => typeof fact === 'string');
  const ofHeaders =
    headersCommand === undefined ? [] : [`  ${key}: runs for its headers: ${[headersCommand].flat().join(' ')}`];
  return [`  ${key}: ${facts.join(', ')}`, ...ofHeaders];
}

/** The keys of the file that are about the gateway of the user. */
function unusedKeys(text: string, file: string): string[] {
  const { value } = parseYaml(text, file);
  return isRecord(value) ? Object.keys(value).filter((key) => !USED_KEYS.includes(key)) : [];
}

const USED_KEYS = ['$schema', 'servers', 'mcpServers', 'defaults'];

function trusted(): readonly TrustedProject[] {
  const path = trustedFile();
  try {
    return readTrusted(path);
  } catch (error) {
    if (!(error instanceof TrustedFileError)) throw error;
    const hint = 'repair it, or remove it and trust the projects again';
    throw new HintedError(`${path} is not used: ${error.message}`, hint, { cause: error });
  }
}

async function changeList(change: (projects: readonly TrustedProject[]) => readonly TrustedProject[]): Promise<void> {
  await withChangeLock(async () => {
    const after = change(trusted());
    try {
      await replaceFile(trustedFile(), trustedList(after), { flush: true });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new HintedError(
        'the list of trusted projects is full',
        '`trunkline trust --list` shows it, `--remove` makes room',
      );
    }
  });
}
