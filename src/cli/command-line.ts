import { parseArgs } from 'node:util';
import { Help, type Option } from 'commander';
import { UsageError } from '../errors/usage-error.js';
import { didYouMean, suggest } from '../json/suggest.js';
import type { CliCommand } from './command.js';
import { placeholders } from './command-help.js';

/** A command line whose options are right, in the order that commander takes: the names of the commands first. */
export interface CommandLine {
  readonly command: CliCommand;
  readonly args: readonly string[];
  /** The words after `--`; `undefined` if there is no `--`. */
  readonly behind: readonly string[] | undefined;
  readonly isHelpWanted: boolean;
  readonly isVersionWanted: boolean;
}

/**
 * Finds the command and checks the options, which may stand before and after it. Throws a `UsageError` for a mistake.
 */
export function readCommandLine(program: CliCommand, args: readonly string[]): CommandLine {
  const tokens = tokensOf(program, args);
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token] : []));
  const { command: found, named } = program.find(words.map(({ value }) => value));
  const isUnknown = found === program && words.length > 0;
  // Without a command, Trunkline serves.
  const command = words.length === 0 ? program.find(['serve']).command : found;
  const options = tokens.flatMap((token) => (token.kind === 'option' ? [token] : []));
  for (const { name, rawName } of options) {
    if (allOptions(program).some(({ long }) => nameOf(long) === name)) continue;
    throw unknownOption(rawName, isUnknown ? allOptions(program) : optionsOf(command));
  }
  if (isUnknown) throw unknownCommand(program, words[0]?.value ?? '');
  for (const token of options) checkOption(token, command);
  const [isHelpWanted = false, isVersionWanted = false] = ['help', 'version'].map((name) =>
    options.some((token) => token.name === name),
  );
  const terminator = tokens.find(({ kind }) => kind === 'option-terminator');
  const first = words.slice(0, named).map(({ index }) => index);
  const names = words.length === 0 ? [command.name()] : first.map((index) => args[index] ?? '');
  return {
    command: words.length === 0 && isHelpWanted ? program : command,
    args: [...names, ...args.filter((_, index) => !first.includes(index))],
    behind: terminator && args.slice(terminator.index + 1),
    isHelpWanted,
    isVersionWanted,
  };
}

/** The words of a command line that are neither options nor their values. It may have mistakes. */
export function wordsOf(program: CliCommand, args: readonly string[]): readonly string[] {
  return tokensOf(program, args).flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
}

/** The value of an option in a command line that may have mistakes. */
export function valueIn(program: CliCommand, args: readonly string[], option: string): string | undefined {
  const all = tokensOf(program, args).flatMap((token) =>
    token.kind === 'option' && token.name === option ? [token.value] : [],
  );
  return all.at(-1);
}

type OptionToken = Extract<ReturnType<typeof tokensOf>[number], { kind: 'option' }>;

function tokensOf(program: CliCommand, args: readonly string[]) {
  const options = Object.fromEntries(
    allOptions(program).map(({ long, short, required }) => [
      nameOf(long),
      {
        type: required ? ('string' as const) : ('boolean' as const),
        ...(short !== undefined && { short: short.slice(1) }),
      },
    ]),
  );
  return parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true }).tokens;
}

/** The options of this command and of all commands below it. */
function allOptions(command: CliCommand): Option[] {
  return [...command.options, ...command.commands.flatMap((each) => allOptions(each as CliCommand))];
}

/** The options that a command takes: its own, and those of all commands. */
function optionsOf(command: CliCommand): Option[] {
  return [...command.options, ...(command.parent === null ? [] : optionsOf(command.parent as CliCommand))];
}

function nameOf(long: string | undefined): string {
  return (long ?? '').slice(2);
}

function checkOption({ name, rawName, value, inlineValue }: OptionToken, command: CliCommand): void {
  const option = optionsOf(command).find(({ long }) => nameOf(long) === name);
  if (option === undefined) throw notFor(command, `\`${rawName}\``);
  if (!option.required && value !== undefined)
    throw new UsageError(`\`${rawName}\` takes no value`, `write \`${rawName}\` alone`);
  // In `--config --verbose` the value of `--config` is most likely missing. `-` is stdin.
  const isAmbiguous = inlineValue === false && /^-./.test(value ?? '');
  if (option.required && (value === undefined || isAmbiguous)) {
    const placeholder = placeholders(option.flags).split(' ').at(-1);
    throw new UsageError(`\`${rawName}\` needs a value`, `write \`${rawName} ${placeholder}\``);
  }
}

function unknownOption(rawName: string, options: readonly Option[]): UsageError {
  const names = options.filter(({ hidden }) => !hidden).map(({ long }) => nameOf(long));
  const nearest = rawName.startsWith('--') ? suggest(rawName.slice(2), names) : undefined;
  const hint = nearest === undefined ? SEE_HELP : didYouMean(`--${nearest}`);
  return new UsageError(`there is no option \`${rawName}\``, hint);
}

/** A word that is no command of the program, or of the command that it follows. */
export function unknownCommand(parent: CliCommand, word: string): UsageError {
  if (parent.parent === null && /\.(?:ya?ml|json)$/i.test(word)) {
    return new UsageError(`\`${word}\` is not a command`, `to use this configuration, run: trunkline --config ${word}`);
  }
  const prefix = parent.parent === null ? '' : `${parent.name()} `;
  const names = new Help().visibleCommands(parent).map((each) => each.name());
  const nearest = suggest(word, names);
  const hint = nearest === undefined ? seeCommands(parent) : didYouMean(`${prefix}${nearest}`);
  return new UsageError(`there is no command \`${prefix}${word}\``, hint);
}

/** A command that only groups others was called alone. */
export function missingCommand(command: CliCommand): UsageError {
  return new UsageError(`\`${command.path}\` needs a command`, seeCommands(command));
}

function seeCommands(command: CliCommand): string {
  if (command.parent === null) return SEE_HELP;
  const names = command.commands.map((each) => `\`${(each as CliCommand).path}\``);
  return `use ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

/** An option or argument that the command does not take. */
function notFor(command: CliCommand, what: string): UsageError {
  return new UsageError(`\`${command.path}\` takes no ${what}`, `see \`${command.path} --help\``);
}

/** More words than the command takes. */
export function excessArguments(command: CliCommand): UsageError {
  const [first] = command.registeredArguments;
  return notFor(command, first === undefined ? 'arguments' : `more than one ${first.name().toLowerCase()}`);
}

/** A word that is none of the choices for its argument; `undefined` if all words are. */
export function wrongChoice(command: CliCommand): UsageError | undefined {
  for (const [at, { argChoices: choices }] of command.registeredArguments.entries()) {
    const word = command.args[at];
    if (choices === undefined || word === undefined || choices.includes(word)) continue;
    const nearest = suggest(word, choices);
    const hint = nearest === undefined ? `use ${choices.join(', ')}` : didYouMean(nearest);
    return new UsageError(`\`${command.path}\` does not take \`${word}\``, hint);
  }
  return undefined;
}

const SEE_HELP = 'see `trunkline --help`';
