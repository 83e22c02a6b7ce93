import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../app/usage-error.js';
import { namesIn } from '../config/expand.js';
import { saveConfig } from '../config-edit/config-file.js';
import { type ConfigEdit, editConfig, entriesIn } from '../config-edit/edit-config.js';
import { runOf } from '../import/plan.js';
import { openEditPlace } from './edit-place.js';
import { tell } from './output.js';

/** `trunkline remove`, `enable` and `disable`: change one server of the configuration, and nothing else in the file. */
export async function changeServer(
  settings: GlobalOptions,
  command: 'remove' | 'enable' | 'disable',
  key: string | undefined,
): Promise<number> {
  if (key === undefined) {
    throw new UsageError(`\`trunkline ${command}\` needs the name of a server`, 'see `trunkline check` for the names');
  }
  const { config, secrets } = openEditPlace(settings);
  const { file, text } = config;
  if (text === undefined) throw new UsageError('there is no configuration yet', '`trunkline add` creates one');
  const edit: ConfigEdit =
    command === 'remove' ? { kind: 'remove', key } : { kind: 'disable', key, isDisabled: command === 'disable' };
  const before = entriesIn(text);
  if (command === 'remove' && Object.hasOwn(before, key) && Object.keys(before).length === 1) {
    throw new UsageError(
      `${key} is the only server, and a configuration needs one`,
      `use \`trunkline disable ${key}\`, or delete ${file}`,
    );
  }
  const edited = editConfig(text, file, edit);
  if (edited === text) {
    tell(`${key} is ${command}d already.`);
    return EXIT.ok;
  }
  saveConfig(config, edited);
  tell(`${DONE[command]} ${key} ${command === 'remove' ? 'from' : 'in'} ${file}.`);
  if (command === 'remove') {
    const left = namesOf(before[key]).filter((name) => Object.hasOwn(secrets.values, name));
    const others = new Set(Object.values(entriesIn(edited)).flatMap(namesOf));
    const unused = left.filter((name) => !others.has(name));
    if (unused.length > 0)
      tell(`No server uses ${unused.join(', ')} in ${secrets.file} now; remove what you do not need.`);
  }
  return EXIT.ok;
}

const DONE = { remove: 'Removed', enable: 'Enabled', disable: 'Disabled' } as const;

function namesOf(entry: unknown): string[] {
  const run = runOf(entry);
  return run === undefined ? [] : namesIn([...run.args, ...Object.values(run.env)]);
}
