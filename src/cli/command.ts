import { styleText } from 'node:util';
import { Command } from 'commander';
import type { GlobalOptions } from '../app/global-options.js';
import { isFolderConfig } from '../state/trusted-projects.js';
import { suggest } from '../wire/json/suggest.js';
import { setQuiet } from './output.js';

/** The parsed command line, as a command gets it. */
export interface Invocation<Options = unknown> extends InvokedWords {
  /** The words after `--`; `undefined` if there is no `--`. */
  readonly behind: readonly string[] | undefined;
  readonly options: Partial<Options>;
}

/** The part of a command line that every command has, also one without options of its own. */
export interface InvokedWords {
  readonly settings: GlobalOptions;
  /** The words after the name of the command. */
  readonly words: readonly string[];
  readonly isJson: boolean;
}

/** A command of the command line: a `Command` with examples, whose action returns an exit code. */
export class CliCommand extends Command {
  /** Exit code of the command that ran. Set at the root. */
  exitCode = 0;
  /** The words after `--` in the command line. Set at the root, because commander does not keep the `--`. */
  behind: readonly string[] | undefined;
  readonly examples: string[] = [];

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name).helpCommand(false);
  }

  get root(): CliCommand {
    return this.parent === null ? this : (this.parent as CliCommand).root;
  }

  example(...lines: readonly string[]): this {
    if (this.examples.length === 0)
      this.addHelpText('after', () => `\n${heading('Examples:')}\n${indented(this.examples)}`);
    this.examples.push(...lines);
    return this;
  }

  /** The words that call this command, with those of its parents. */
  get path(): string {
    return this.parent === null ? this.name() : `${(this.parent as CliCommand).path} ${this.name()}`;
  }

  /** Ends the program with the message for an unknown subcommand. */
  refuse(word: string): never {
    const names = this.createHelp()
      .visibleCommands(this)
      .map((each) => each.name());
    const nearest = suggest(word, names);
    const file = `To use this configuration, run: trunkline --config ${word}`;
    const hint = /\.(?:ya?ml|json)$/i.test(word) ? file : nearest === undefined ? '' : `(Did you mean ${nearest}?)`;
    this.error([`error: unknown command '${word}'`, hint].filter(Boolean).join('\n'));
  }

  /** `load` imports the function when the command is called, so that no other command is loaded. */
  runs<Options>(load: () => Promise<(invocation: Invocation<Options>) => Promise<number>>): this {
    this.showHelpAfterError(`See \`${this.path} --help\`.`);
    return this.action(async () => {
      const { config, verbose = 0, logFile, view, gateway, quiet = false, json = false } = this.optsWithGlobals();
      setQuiet(quiet);
      const { root } = this;
      const run = await load();
      root.exitCode = await run({
        settings: { config, searchesFolder: isFolderConfig, verbosity: verbose, logFile, view, gateway },
        words: this.args,
        behind: root.behind,
        options: this.opts<Partial<Options>>(),
        isJson: json,
      });
    });
  }
}

/** The exit codes, as the help of each command lists them. */
export const EXIT_CODES = [
  '0   all servers and calls succeeded',
  '1   a server, the call or a change failed, a tool is not approved, or the',
  '    doctor found a problem',
  '2   the command line or the configuration has a mistake',
  '3   no gateway runs: status, ps, metrics, restart, record, inspect without',
  '    FILE and logs without a log need one; hub status and hub restart need',
  '    a hub',
  '4 to 10  how a call failed: see `trunkline call --help`',
  '70  a bug in Trunkline',
  'When a signal ends a command other than serve: 128 plus its number.',
];

/** Returns bold text. Commander removes the style where stdout has no colors. */
export function heading(text: string): string {
  return styleText('bold', text, { validateStream: false });
}

export function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}`).join('\n');
}
