import { homedir } from 'node:os';
import { type Keychain, readSecretFile, systemKeychain, writeSecretFile } from '../../../config/resolve/secrets.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { withChangeLock } from '../../../state/change-lock.js';
import { secretFile } from '../../../state/user-files.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { print, printJson, tell } from '../../output.js';
import { readHidden } from '../../questions.js';

export const NAME_OF_VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

type Storage = 'file' | 'keychain';

/** `trunkline secret set|list|remove`: the secrets of this user, to which a configuration refers by name. */
export async function secret(
  action: SecretAction,
  { words: [name = ''], options, isJson }: Invocation<{ keychain: true }>,
): Promise<number> {
  const file = secretFile();
  const keychain = systemKeychain({ env: process.env, cwd: homedir() });
  const wanted: Storage = options.keychain ? 'keychain' : 'file';
  const { names, inKeychain, storage, note } = await useSecrets(action, name, { file, readValue, keychain, wanted });
  if (isJson) {
    const result = action === 'set' ? 'stored' : 'removed';
    await printJson(action === 'list' ? { file, names, keychain: inKeychain } : { file, name, result, place: storage });
    return EXIT.ok;
  }
  if (names.length > 0) await print(names.join('\n'));
  if (note !== '') tell(note);
  return EXIT.ok;
}

type SecretAction = 'set' | 'list' | 'remove';

export interface SecretStores {
  readonly file: string;
  /** Asks for the value of a secret. Resolves with `undefined` if the user gives none. */
  readonly readValue: (name: string) => Promise<string | undefined>;
  /** Absent on a system whose keychain Trunkline cannot use. */
  readonly keychain: Keychain | undefined;
  /** Place in which `set` stores a value. */
  readonly wanted: Storage;
}

/** Stores, lists or removes secrets. Returns the names for stdout, and a sentence for stderr. Throws a `UsageError`. */
export async function useSecrets(
  action: SecretAction,
  name: string,
  { file, readValue: ask, keychain, wanted }: SecretStores,
) {
  // An unusable file is reported before the user is asked for a value.
  const found = await readUsable(file);
  if (action === 'list') {
    const { names, inKeychain } = found;
    const note = inKeychain.length === 0 ? '' : `In the keychain: ${inKeychain.join(', ')}.`;
    return { names, inKeychain, storage: 'file', note: names.length === 0 ? NONE : note };
  }
  if (action === 'set' && !NAME_OF_VARIABLE.test(name))
    throw new UsageError(`\`${name}\` is not a name of a secret`, 'use letters, digits and `_`, as for a variable');
  const value = action === 'set' ? checkedValue(await ask(name)) : '';
  // The new value is stored before the old one is removed, so that no failure loses both.
  if (action === 'set' && wanted === 'keychain') await storeInKeychain(keychain, name, value);
  const { before, inKeychain, listed, storage } = await withChangeLock(async () => {
    // Another command may have stored a secret while this one waited for the value.
    const { names, inKeychain: listed, stored } = await readUsable(file);
    if (action === 'remove' && !names.includes(name)) {
      const hint = hintFor(name, names, '`trunkline secret list` shows the names');
      throw new UsageError(`there is no secret \`${name}\``, hint);
    }
    const secrets = new Map(stored.secrets);
    const inKeychain = new Set(listed);
    const before: Storage = inKeychain.has(name) ? 'keychain' : 'file';
    secrets.delete(name);
    inKeychain.delete(name);
    if (action === 'set' && wanted === 'file') secrets.set(name, value);
    else if (action === 'set') inKeychain.add(name);
    await writeSecretFile(file, { secrets, inKeychain });
    return { before, inKeychain, listed, storage: action === 'set' ? wanted : before };
  });
  const isLeft = before === 'keychain' && !inKeychain.has(name);
  const fault = isLeft ? await (keychain?.remove(name) ?? NO_KEYCHAIN) : undefined;
  const done = action === 'set' ? `Stored the secret ${name}${TO[wanted]}` : `Removed the secret ${name}`;
  const rest = fault === undefined ? '' : ` It is still in the keychain, and not used: ${fault}.`;
  return { names: [], inKeychain: listed, storage, note: `${done}. ${LATER}${rest}` };
}

async function readUsable(file: string) {
  const stored = await readSecretFile(file);
  if ('fault' in stored)
    throw new UsageError(`the file ${file} cannot be used: ${stored.fault}`, 'correct or remove the file');
  const inKeychain = [...stored.inKeychain].sort();
  return { names: [...stored.secrets.keys(), ...inKeychain].sort(), inKeychain, stored };
}

const TO = { file: '', keychain: ' in the keychain' } as const;

async function storeInKeychain(keychain: Keychain | undefined, name: string, value: string): Promise<void> {
  const hint = `\`trunkline secret set ${name}\` without \`--keychain\` stores it in a file that only you can read`;
  if (keychain === undefined) throw new UsageError(NO_KEYCHAIN, hint);
  const fault = await keychain.store(name, value);
  if (fault === undefined) return;
  throw new UsageError(`the ${keychain.title} does not take the secret ${name}: ${fault}`, hint);
}

const NO_KEYCHAIN = 'Trunkline cannot use the keychain of this system';
const NONE = 'No secrets are stored. `trunkline secret set NAME` stores one.';
const LATER = 'A running Trunkline reads it when the configuration file is saved.';

/** Most characters of a value on stdin, because keys and certificates have some kilobytes. */
const MAX_VALUE_LENGTH = 64 * 1024;

/** Returns the value. Throws a `UsageError` if there is none. */
export function checkedValue(value: string | undefined): string {
  if (value === undefined) throw new UsageError('nothing was stored', 'run the command again to store a value');
  if (value === '') throw new UsageError('the value is empty, so nothing was stored', 'write the value to stdin');
  return value;
}

/** Asks on a terminal; elsewhere, reads stdin without the line break at the end, which `echo` adds. */
export async function readValue(name: string): Promise<string | undefined> {
  const { stdin } = process;
  if (stdin.isTTY) return await readHidden(stdin, process.stderr, `Value of ${name} (not shown): `);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of stdin) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_VALUE_LENGTH) throw new UsageError('the value is larger than 64 KiB', 'store a shorter one');
  }
  return text.replace(/\r?\n$/, '');
}
