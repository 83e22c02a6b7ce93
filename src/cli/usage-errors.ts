import { type ParseArgsConfig, parseArgs } from 'node:util';
import { UsageError } from '../app/usage-error.js';
import { didYouMean, suggest } from '../json/suggest.js';
import { COMMANDS } from './help.js';

type Options = NonNullable<ParseArgsConfig['options']>;

/** Names for the values of options that are not files. */
const VALUE_OF = new Map([
  ['http', '[HOST:]PORT'],
  ['view', 'NAME'],
  ['allowed-host', 'HOST'],
  ['allowed-origin', 'URL'],
]);

/** Explains why `parseArgs` has rejected a command line. */
export function mistakeIn(args: readonly string[], options: Options): UsageError {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const option = options[token.name];
    if (option === undefined) return unknownOption(token.rawName, options);
    if (option.type === 'boolean' && token.value !== undefined) {
      return new UsageError(`\`${token.rawName}\` takes no value`, `write \`${token.rawName}\` alone`);
    }
    if (option.type === 'string' && (token.value === undefined || isAmbiguous(token))) {
      return new UsageError(
        `\`${token.rawName}\` needs a value`,
        `write \`${token.rawName} ${VALUE_OF.get(token.name) ?? 'FILE'}\``,
      );
    }
  }
  return new UsageError('cannot parse the command line', SEE_HELP);
}

export function unknownCommand(word: string): UsageError {
  if (/\.(?:ya?ml|json)$/i.test(word)) {
    return new UsageError(`\`${word}\` is not a command`, `to use this configuration, run: trunkline --config ${word}`);
  }
  const nearest = suggest(word, [...COMMANDS, 'help']);
  return new UsageError(`there is no command \`${word}\``, nearest === undefined ? SEE_HELP : didYouMean(nearest));
}

/** An option or argument that the command does not support. */
export function notFor(command: string, what: string): UsageError {
  return new UsageError(`\`trunkline ${command}\` takes no ${what}`, `see \`trunkline ${command} --help\``);
}

export function missingName(): UsageError {
  return new UsageError('`trunkline call` needs the name of a tool', '`trunkline tools` lists them');
}

export function splitArguments(): UsageError {
  const hint = `put quotes around the JSON: trunkline call NAME '{"path": "notes.txt"}'`;
  return new UsageError('`trunkline call` takes a name and one JSON object', hint);
}

const SEE_HELP = 'see `trunkline --help`';

function unknownOption(rawName: string, options: Options): UsageError {
  const nearest = rawName.startsWith('--') ? suggest(rawName.slice(2), Object.keys(options)) : undefined;
  const hint = nearest === undefined ? SEE_HELP : didYouMean(`--${nearest}`);
  return new UsageError(`there is no option \`${rawName}\``, hint);
}

/** In `--config --verbose` the value of `--config` is most likely missing. */
function isAmbiguous({
  value,
  inlineValue,
}: {
  value?: string | undefined;
  inlineValue?: boolean | undefined;
}): boolean {
  return inlineValue === false && value?.startsWith('-') === true;
}
