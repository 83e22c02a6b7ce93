import { EXIT } from '../app/exit-codes.js';
import { UsageError } from '../app/usage-error.js';
import { secretFile } from '../app/user-files.js';
import { readSecretFile, writeSecretFile } from '../files/secret-file.js';
import { didYouMean, suggest } from '../json/suggest.js';
import { print, printJson, tell } from './output.js';
import { readHidden } from './read-hidden.js';

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** `trunkline secret set|list|remove`: the secrets of this user, to which a configuration refers by name. */
export async function secret(words: readonly string[], isJson: boolean): Promise<number> {
  const file = secretFile();
  const { names, note } = await useSecrets(words, { file, readValue });
  if (isJson) {
    const [action, name] = words;
    await printJson(
      action === 'list' ? { file, names } : { file, name, result: action === 'set' ? 'stored' : 'removed' },
    );
    return EXIT.ok;
  }
  if (names.length > 0) await print(names.join('\n'));
  if (note !== '') tell(note);
  return EXIT.ok;
}

export interface SecretPlaces {
  readonly file: string;
  /** Asks for the value of a secret; `undefined` if the person gives none. */
  readonly readValue: (name: string) => Promise<string | undefined>;
}

/** Does what these words say. Returns the names to print, and what to tell the person. Throws a `UsageError`. */
export async function useSecrets(
  [action, name, ...excess]: readonly string[],
  { file, readValue: ask }: SecretPlaces,
): Promise<{ readonly names: readonly string[]; readonly note: string }> {
  checkWords(action, name, excess);
  const found = await readSecretFile(file);
  if ('fault' in found)
    throw new UsageError(`the file ${file} cannot be used: ${found.fault}`, 'correct or remove the file');
  const secrets = new Map(found.secrets);
  const names = [...secrets.keys()];
  if (name === undefined) return { names, note: names.length === 0 ? NONE : '' };
  if (action === 'set') secrets.set(checkedName(name), checkedValue(await ask(name)));
  else if (!secrets.delete(name)) throw unknown(name, names);
  await writeSecretFile(file, secrets);
  return { names: [], note: `${action === 'set' ? 'Stored' : 'Removed'} the secret ${name}. ${LATER}` };
}

const NONE = 'No secrets are stored. `trunkline secret set NAME` stores one.';
const LATER = 'A running Trunkline reads it when the configuration file is saved.';

function checkWords(action: string | undefined, name: string | undefined, excess: readonly string[]): void {
  if (action !== 'set' && action !== 'remove' && action !== 'list')
    throw new UsageError('`trunkline secret` needs `set NAME`, `list` or `remove NAME`', SEE_HELP);
  if (action === 'list') {
    if (name !== undefined) throw new UsageError('`trunkline secret list` takes no arguments', SEE_HELP);
    return;
  }
  if (name === undefined) throw new UsageError(`\`trunkline secret ${action}\` needs a name`, SEE_HELP);
  if (excess.length === 0) return;
  const hint = action === 'set' ? 'write the value to stdin, because other programs can read a command line' : SEE_HELP;
  throw new UsageError(`\`trunkline secret ${action}\` takes a name and nothing else`, hint);
}

const SEE_HELP = 'see `trunkline secret --help`';

function checkedName(name: string): string {
  if (NAME.test(name)) return name;
  throw new UsageError(`\`${name}\` is not a name of a secret`, 'use letters, digits and `_`, as for a variable');
}

function unknown(name: string, known: readonly string[]): UsageError {
  const meant = suggest(name, known);
  return new UsageError(
    `there is no secret \`${name}\``,
    meant === undefined ? '`trunkline secret list` shows the names' : didYouMean(meant),
  );
}

/** A large key or certificate is some kilobytes long. */
const MAX_VALUE_LENGTH = 64 * 1024;

function checkedValue(value: string | undefined): string {
  if (value === undefined) throw new UsageError('nothing was stored', 'run the command again to store a value');
  if (value === '') throw new UsageError('the value is empty, so nothing was stored', 'write the value to stdin');
  return value;
}

async function readValue(name: string): Promise<string | undefined> {
  const { stdin } = process;
  return stdin.isTTY ? await readHidden(stdin, process.stderr, `Value of ${name} (not shown): `) : await readAll(stdin);
}

/** The text on stdin without the line break at the end, which `echo` adds. */
async function readAll(input: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of input) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_VALUE_LENGTH) throw new UsageError('the value is larger than 64 KiB', 'store a shorter one');
  }
  return text.replace(/\r?\n$/, '');
}
