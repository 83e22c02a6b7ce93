import { type Argument, type Command, Help, type Option } from 'commander';
import type { CliCommand } from './command.js';
import { type Look, paint } from './terminal.js';

/** The most columns of a line that is easy to read. */
const MAX_WIDTH = 100;
const DEFAULT_WIDTH = 80;

/** The text of `--help`: usage, description, commands, options, examples and exit codes. */
export function helpText(command: CliCommand, look: Look): string {
  const help = new CommandHelp(look);
  help.helpWidth = Math.min(look.width ?? DEFAULT_WIDTH, MAX_WIDTH);
  return help.formatHelp(command, help);
}

/** How commands, arguments and options are written for a person. */
export class CommandHelp extends Help {
  override showGlobalOptions = true;
  readonly #look: Look;

  constructor(look: Look) {
    super();
    this.#look = look;
  }

  override formatHelp(command: CliCommand, helper: Help): string {
    const termWidth = this.padWidth(command, helper);
    const list = (heading: string, items: readonly (readonly [term: string, text: string])[]) =>
      items.length === 0
        ? []
        : [[heading, ...items.map((item) => this.formatItem(item[0], termWidth, item[1], helper))]];
    const groups = this.groupItems([...command.commands], this.visibleCommands(command), (each) => each.helpGroup());
    const options = this.visibleOptions(command);
    const ofAll = command.parent === null ? [] : this.visibleGlobalOptions(command);
    const toItem = (option: Option) => [this.optionTerm(option), this.optionDescription(option)] as const;
    const sections = [
      [`Usage: ${this.commandUsage(command)}`],
      [this.boxWrap(this.commandDescription(command), this.helpWidth ?? MAX_WIDTH)],
      ...[...groups].flatMap(([heading, commands]) =>
        list(
          heading || 'Commands:',
          commands.map((each) => [this.subcommandTerm(each), this.subcommandDescription(each)]),
        ),
      ),
      ...list(
        'Arguments:',
        this.visibleArguments(command).map((each) => [this.argumentTerm(each), this.argumentDescription(each)]),
      ),
      ...list('Options:', options.map(toItem)),
      ...list('Options of all commands:', ofAll.map(toItem)),
      ...(command.examples.length === 0 ? [] : [['Examples:', ...command.examples.map((line) => `  ${line}`)]]),
      EXIT_CODES,
    ];
    // Every section but the usage and the description begins with a heading.
    const [usage = [], about = [], ...headed] = sections;
    const styled = headed.map(([heading = '', ...lines]) => [paint(this.#look, 'bold', heading), ...lines]);
    return [usage, about, ...styled].map((lines) => lines.join('\n')).join('\n\n');
  }

  override commandUsage(command: Command): string {
    const words = command.registeredArguments.map((argument) => this.argumentTerm(argument));
    const names = this.visibleCommands(command).map((each) => each.name());
    if (names.length > 0) words.push(command.parent === null ? '[COMMAND]' : names.join('|'));
    return [shownPath(command), ...words, '[OPTIONS]'].join(' ');
  }

  override subcommandTerm(command: Command): string {
    return [shownPath(command), ...command.registeredArguments.map((argument) => this.argumentTerm(argument))].join(
      ' ',
    );
  }

  override argumentTerm(argument: Argument): string {
    const name = `${argument.name()}${argument.variadic ? '…' : ''}`;
    return argument.required ? name : `[${name}]`;
  }

  override optionTerm({ flags }: Option): string {
    return placeholders(flags);
  }
}

/** The words that call a command. `serve` may be left out. */
function shownPath(command: Command): string {
  return (command as CliCommand).path.replace(/ serve$/, ' [serve]');
}

/** `--config <FILE>` as `--config FILE`. */
export function placeholders(flags: string): string {
  return flags.replaceAll(/[<>]/g, '').replaceAll('...', '…');
}

export const EXIT_CODES = [
  'Exit codes:',
  '  0   all servers and calls succeeded',
  '  1   a server, the call or a change failed, a tool is not approved, or the doctor found a problem',
  '  2   the command line or the configuration has a mistake',
  '  3   no hub runs: status, ps, logs, restart, hub status and hub restart need one',
  '  70  a bug in Trunkline',
  '  When a signal ends a command other than serve: 128 plus the number of the signal.',
];
