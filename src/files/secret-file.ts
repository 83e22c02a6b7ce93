import { isRecord, parseJson } from '../json/json-value.js';
import { privateFile, readRegularFile } from './regular-file.js';
import { replaceFile } from './whole-file.js';

/** The size limit of the file: hundreds of keys and certificates. */
const MAX_FILE_BYTES = 1024 * 1024;

/** The secrets of this user by name; or why there are none, as a phrase without a value of a secret. */
export type SecretFile = StoredSecrets | { readonly fault: string };

export interface StoredSecrets {
  readonly secrets: ReadonlyMap<string, string>;
  /** The names of the secrets whose values are in the keychain of the system. */
  readonly inKeychain: ReadonlySet<string>;
}

/** Reads the file with the secrets, which belongs to this user alone. A file that does not exist has none. */
export async function readSecretFile(file: string): Promise<SecretFile> {
  const found = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
  if (found.kind === 'absent') return { secrets: new Map(), inKeychain: new Set() };
  if (found.kind === 'unusable') return { fault: found.reason };
  const content = parseJson(new TextDecoder().decode(found.bytes));
  if (!isRecord(content)) return { fault: 'it is damaged' };
  const entries = Object.entries(content).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  const elsewhere = Object.entries(content).filter(([, entry]) => isRecord(entry) && entry.keychain === true);
  return { secrets: new Map(entries), inKeychain: new Set(elsewhere.map(([name]) => name)) };
}

/** Writes all secrets to the file, in the order of their names. */
export async function writeSecretFile(file: string, { secrets, inKeychain }: StoredSecrets): Promise<void> {
  const elsewhere = [...inKeychain].map((name) => [name, { keychain: true }] as const);
  const sorted = [...secrets, ...elsewhere].sort(([one], [other]) => (one < other ? -1 : 1));
  await replaceFile(file, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`, { flush: true });
}
