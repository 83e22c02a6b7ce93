import { createHash } from 'node:crypto';
import { chownSync, existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { GlobalOptions } from '../../../app/global-options.js';
import { checkFile } from '../../../config/file/check-file.js';
import { ConfigLocation, readConfigText } from '../../../config/file/find-config.js';
import { expandHome, namesIn, userVariable } from '../../../config/resolve/references.js';
import { EXIT, UsageError } from '../../../errors/usage-error.js';
import { realPath, replaceFileSync } from '../../../files/whole-file.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { newToken } from '../../../state/token-file.js';
import { readTokenFile, withToken } from '../../../users/machine-tokens.js';
import { folderOf } from '../../../users/user-variables.js';
import type { Invocation } from '../../command.js';
import { note, print, printJson } from '../../output.js';
import { checkedValue, NAME_OF_VARIABLE, readValue } from '../config/secret.js';

/** `trunkline token add`: makes a token for a machine, prints it, and stores its hash in the file of `auth.tokens`. */
export async function addToken({
  settings,
  words: [name = ''],
  options: { group: groups = [] },
  isJson,
}: Invocation<{ group: readonly string[] }>): Promise<number> {
  const { path: file } = placeOf('tokens', settings);
  const token = newToken();
  const hash = createHash('sha256').update(token).digest('hex');
  await withChangeLock(() => {
    // The file has only hashes, so all accounts may read it.
    writeFor(file, withToken(readTokenFile(file) ?? '', file, { name, hash, groups }), 0o644);
  });
  if (isJson) await printJson({ name, groups, file, token });
  else await print(token);
  note(`Added the token of ${name} to ${file}. It is shown only now. A running gateway accepts it within a second.`);
  return EXIT.ok;
}

/** `trunkline user set`: stores the value of a variable of a user or a machine in the folder of `auth.variables`. */
export async function setVariable({
  settings,
  words: [name = '', variable = ''],
  options: { machine },
  isJson,
}: Invocation<{ machine: true }>): Promise<number> {
  const { path, text } = placeOf('variables', settings);
  const kind = machine === true ? 'machine' : 'user';
  const folder = name === '' ? undefined : folderOf({ name, kind });
  if (folder === undefined) throw new UsageError(`the name of a ${kind} is missing or too long`, `name a ${kind}`);
  if (!NAME_OF_VARIABLE.test(variable))
    throw new UsageError(`\`${variable}\` is not a name of a variable`, 'use letters, digits and `_`');
  const value = checkedValue(await readValue(variable));
  const file = join(path, ...folder, variable);
  await withChangeLock(() => writeFor(file, value, 0o600));
  const isUsed = namesIn([text]).some((each) => userVariable(each) === variable);
  if (isJson) await printJson({ name, kind, variable, file, used: isUsed });
  note(`Stored ${variable} of the ${kind} ${name} in ${file}. It applies to the next session.`);
  if (!isUsed) note(`No server of the configuration refers to \${user:${variable}} yet.`);
  return EXIT.ok;
}

/** The path of a setting of `gateway.http.auth`, and the text of the configuration. Throws a `UsageError` if it is not set. */
function placeOf(setting: 'tokens' | 'variables', settings: GlobalOptions) {
  const { file } = new ConfigLocation(settings);
  const text = readConfigText(file);
  const named = checkFile(text, file).gateway.http.auth?.[setting];
  if (named !== undefined) return { path: resolve(dirname(file), expandHome(named, homedir())), text };
  const path = setting === 'tokens' ? 'machines' : 'variables';
  throw new UsageError(
    `${file} has no \`gateway.http.auth.${setting}\``,
    `add it, such as \`gateway: { http: { auth: { tokens: machines${setting === 'tokens' ? '' : `, ${setting}: ${path}`} } } }\``,
  );
}

/**
 * Writes a file as the owner of it, or of the folder in which it is made, would. Otherwise the gateway, which runs with an account of
 * its own, could not read what root has written. A symbolic link stays a link.
 */
function writeFor(path: string, text: string, mode: number): void {
  const file = realPath(path) ?? path;
  const made: string[] = [];
  let nearest = file;
  for (; !existsSync(nearest); nearest = dirname(nearest)) made.push(nearest);
  const { uid, gid, mode: before } = statSync(nearest);
  replaceFileSync(file, text, { mode: nearest === file ? before & 0o777 : mode, flush: true });
  if (process.getuid?.() === 0) for (const each of [file, ...made]) chownSync(each, uid, gid);
}
