import { isRecord } from '../json/is-record.js';
import { parseJson } from '../json/parse-json.js';
import { privateFile, readRegularFile } from './regular-file.js';
import { replaceFile } from './whole-file.js';

/** The size limit of the file: hundreds of keys and certificates. */
const MAX_FILE_BYTES = 1024 * 1024;

/** The secrets of this user by name; or why there are none, as a phrase without a value of a secret. */
export type SecretFile = { readonly secrets: ReadonlyMap<string, string> } | { readonly fault: string };

/** Reads the file with the secrets, which belongs to this user alone. A file that does not exist has none. */
export async function readSecretFile(file: string): Promise<SecretFile> {
  const found = await readRegularFile(file, privateFile(MAX_FILE_BYTES));
  if (found.kind === 'absent') return { secrets: new Map() };
  if (found.kind === 'unusable') return { fault: found.reason };
  const content = parseJson(new TextDecoder().decode(found.bytes));
  if (!isRecord(content)) return { fault: 'it is damaged' };
  const entries = Object.entries(content).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return { secrets: new Map(entries) };
}

/** Writes all secrets to the file, in the order of their names. */
export async function writeSecretFile(file: string, secrets: ReadonlyMap<string, string>): Promise<void> {
  const sorted = [...secrets].sort(([one], [other]) => (one < other ? -1 : 1));
  await replaceFile(file, `${JSON.stringify(Object.fromEntries(sorted), undefined, 2)}\n`, { flush: true });
}
