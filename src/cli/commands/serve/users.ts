import { createHash } from 'node:crypto';
import { chownSync, existsSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { checkFile } from '../../../config/file/check-file.js';
import { ConfigLocation, readConfigText } from '../../../config/file/find-config.js';

import { expandHome, textsOfEntry, userVariable, variableNamesIn } from '../../../config/resolve/references.js';

import type { User } from '../../../downstream/port.js';

import { machinesIn, readTokenFile, withoutTokens, withToken } from '../../../downstream/users/machine-tokens.js';
import { folderOf, storedVariables } from '../../../downstream/users/user-variables.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { missingFolders, realPath, replaceFileSync } from '../../../host/files/whole-file.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { newToken } from '../../../state/token-file.js';
import { plural } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { answer, note, printJson } from '../../output.js';
import { lookOf, table } from '../../terminal.js';
import { checkedValue, NAME_OF_VARIABLE, readValue } from '../config/secret.js';

/** `trunkline token add`: makes a token for a machine, prints it, and stores its hash in the file of `auth.tokens`. */
export async function addToken(invocation: Invocation<{ group: readonly string[] }>): Promise<number> {
  const { settings, words, options, isJson } = invocation;
  const [name = ''] = words;
  const { group: groups = [] } = options;
  const { path: file } = placeOf('tokens', settings);
  const token = newToken();
  const hash = createHash('sha256').update(token).digest('hex');
  await withChangeLock(() => {
    // The file has only hashes, so all accounts may read it.
    writeFor(file, withToken(readTokenFile(file) ?? '', file, { name, hash, groups }), 0o644);
  });
  await answer(isJson, { name, groups, file, token }, () => token);
  note(`Added the token of ${name} to ${file}. It is shown only now. A running gateway accepts it within a second.`);
  return EXIT.ok;
}

/** `trunkline token list`: the machines that have a token, one for each token, and their groups. */
export async function listTokens({ settings, isJson }: Invocation): Promise<number> {
  const { path: file } = placeOf('tokens', settings);
  const tokens = machinesOf(file).map(({ name, groups }) => ({ name, groups }));
  const rows = tokens.map(({ name, groups }) => [name, listed(groups)]);
  return await answer(isJson, { file, tokens }, () => textOf(['NAME', 'GROUPS'], ...rows));
}

/** `trunkline token remove`: removes all tokens of a machine, or with `--earlier` all but the one that was added last. */
export async function removeToken({
  settings,
  words,
  options,
  isJson,
}: Invocation<{ earlier: true }>): Promise<number> {
  const [name = ''] = words;
  const { earlier } = options;
  const { path: file } = placeOf('tokens', settings);
  const removed = await withChangeLock(() => {
    const { text, count } = withoutTokens(readTokenFile(file) ?? '', file, name, earlier === true);
    if (count > 0) writeFor(file, text, 0o644);
    return count;
  });
  if (removed === 0) {
    const message = `${file} has no ${earlier ? 'earlier ' : ''}token of ${name}`;
    throw new UsageError(message, '`trunkline token list` shows the names');
  }
  if (isJson) await printJson({ name, removed, file });
  note(
    `Removed ${plural(removed, 'token')} of ${name}. A running gateway notices within a second, and ends no open stream.`,
  );
  return EXIT.ok;
}

/** `trunkline user list`: the users with variables, the machines with variables or a token, and what each lacks. */
export async function listUsers({ settings, words: [name], isJson }: Invocation): Promise<number> {
  const { path: folder, tokens, names } = placeOf('variables', settings);
  const users = knownUsers(folder, tokens)
    .filter((user) => name === undefined || name === user.name)
    .map((user) => ({ ...user, missing: names(true).filter((each) => !user.variables.includes(each)) }));
  const rows = users.map((each) => [each.name, each.kind, listed(each.variables), listed(each.missing)]);
  return await answer(isJson, { folder, users }, () => textOf(['NAME', 'KIND', 'VARIABLES', 'MISSING'], ...rows));
}

/** The users and machines with a variable in the folder, and the machines with a token. */
export function knownUsers(folder: string, tokens: string | undefined) {
  const stored = storedVariables(folder);
  const others = new Set(tokens === undefined ? [] : machinesOf(tokens).map(({ name }) => name));
  for (const { name, kind } of stored) if (kind === 'machine') others.delete(name);
  return [...stored, ...[...others].map((name) => ({ name, kind: 'machine' as const, variables: [] as string[] }))];
}

function machinesOf(file: string) {
  return [...machinesIn(readTokenFile(file) ?? '', file).values()];
}

function listed(names: readonly string[]): string {
  return names.join(', ') || '-';
}

function textOf(...rows: readonly string[][]): string {
  return table(rows, lookOf(process.stdout));
}

/** `trunkline user remove`: removes a variable of a user or a machine, or all of them. */
export async function removeVariables(invocation: Invocation<{ machine: true }>): Promise<number> {
  const { settings, words, options, isJson } = invocation;
  const [name = '', variable] = words;
  const { path } = placeOf('variables', settings);
  const kind = options.machine ? 'machine' : 'user';
  const { removed, folder } = await removeStored(path, { name, kind }, variable);
  if (removed.length === 0) {
    const message = `the ${kind} ${name} has no variable${variable === undefined ? '' : ` ${variable}`}`;
    throw new UsageError(message, '`trunkline user list` shows the variables of all');
  }
  if (isJson) await printJson({ name, kind, removed, folder });
  note(
    `Removed ${listed(removed)} of the ${kind} ${name}. It applies to the next session; processes that run keep it.`,
  );
  return EXIT.ok;
}

/** Removes a variable of a user or a machine below the folder of all variables, or all of them. Resolves with their names and their folder. */
export async function removeStored(path: string, { name, kind }: Pick<User, 'name' | 'kind'>, variable?: string) {
  const { variables = [] } = storedVariables(path).find((each) => each.name === name && each.kind === kind) ?? {};
  const removed = variables.filter((each) => variable === undefined || each === variable);
  const folder = join(path, ...(folderOf({ name, kind }) ?? []));
  if (removed.length > 0)
    await withChangeLock(() => {
      for (const each of removed) rmSync(join(folder, each));
      if (removed.length === variables.length) rmSync(folder, { recursive: true });
    });
  return { removed, folder };
}

/** `trunkline user set`: stores the value of a variable of a user or a machine in the folder of `auth.variables`. */
export async function setVariable({
  settings,
  words,
  options,
  isJson,
}: Invocation<{ machine: true }>): Promise<number> {
  const [name = '', variable = ''] = words;
  const { path, names } = placeOf('variables', settings);
  const kind = options.machine ? 'machine' : 'user';
  const folder = name === '' ? undefined : folderOf({ name, kind });
  if (folder === undefined) throw new UsageError(`the name of a ${kind} is missing or too long`, `name a ${kind}`);
  if (!NAME_OF_VARIABLE.test(variable))
    throw new UsageError(`\`${variable}\` is not a name of a variable`, 'use letters, digits and `_`');
  const value = checkedValue(await readValue(variable));
  const file = join(path, ...folder, variable);
  await withChangeLock(() => writeFor(file, value, 0o600));
  const isUsed = names().includes(variable);
  if (isJson) await printJson({ name, kind, variable, file, used: isUsed });
  note(`Stored ${variable} of the ${kind} ${name} in ${file}. It applies to the next session.`);
  if (!isUsed) note(`No server of the configuration refers to \${user:${variable}} yet.`);
  return EXIT.ok;
}

/**
 * Returns the path in a setting of `gateway.http.auth`, and the path in its `tokens`. `names` returns the variables of users to which
 * servers refer; with `true`, without those that have a default. Throws a `UsageError` if the setting is not set.
 */
function placeOf(setting: 'tokens' | 'variables', settings: GlobalOptions) {
  const { file } = new ConfigLocation(settings);
  const { gateway, servers } = checkFile(readConfigText(file), file);
  const near = (path: string) => resolve(dirname(file), expandHome(path, homedir()));
  const { [setting]: named, tokens } = gateway.http.auth ?? {};
  const texts = servers.flatMap(textsOfEntry);
  const names = (areNeeded?: boolean) => variableNamesIn(texts, areNeeded).flatMap((name) => userVariable(name) ?? []);
  if (named !== undefined) return { path: near(named), tokens: tokens === undefined ? tokens : near(tokens), names };
  const path = setting === 'tokens' ? 'machines' : 'variables';
  throw new UsageError(
    `${file} has no \`gateway.http.auth.${setting}\``,
    `add it, such as \`gateway: { http: { auth: { tokens: machines${setting === 'tokens' ? '' : `, ${setting}: ${path}`} } } }\``,
  );
}

/**
 * Writes a file, and makes its folders. Root gives them the owner of the earlier file, or of the folder in which they are made, because the
 * gateway runs with an account of its own, and could not read files of root. A symbolic link stays a link.
 */
function writeFor(path: string, text: string, mode: number): void {
  const file = realPath(path) ?? path;
  const made = missingFolders(file);
  const isNew = !existsSync(file);
  const { uid, gid, mode: before } = statSync(isNew ? dirname(made.at(-1) ?? file) : file);
  replaceFileSync(file, text, { mode: isNew ? mode : before & 0o777, flush: true });
  if (process.getuid?.() === 0) for (const each of [file, ...made]) chownSync(each, uid, gid);
}
