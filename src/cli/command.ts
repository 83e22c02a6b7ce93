import { Command } from 'commander';
import type { GlobalOptions } from '../app/global-options.js';
import { UsageError } from '../errors/usage-error.js';
import { setQuiet } from './output.js';

/** What a command gets when it runs. */
export interface Invocation<Options> {
  readonly settings: GlobalOptions;
  /** The words after the name of the command. */
  readonly words: readonly string[];
  /** Those of them that stand after `--`; `undefined` if there is no `--`. */
  readonly behind: readonly string[] | undefined;
  readonly options: Partial<Options>;
  readonly program: CliCommand;
}

/** A command of the command line: a `Command` with examples, whose action returns an exit code. */
export class CliCommand extends Command {
  /** Exit code of the command that ran. Set at the root. */
  exitCode = 0;
  /** The words after `--` in the command line. Set at the root. */
  behind: readonly string[] | undefined;
  readonly examples: string[] = [];
  #missing: { readonly what: string; readonly hint: string } | undefined;

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name).helpCommand(false);
  }

  /** Adds lines to the examples of the help. */
  example(...lines: readonly string[]): this {
    this.examples.push(...lines);
    return this;
  }

  /** Says what is missing without a required argument, and what helps. */
  needs(what: string, hint: string): this {
    this.#missing = { what, hint };
    return this;
  }

  get withoutArgument(): UsageError {
    const { what, hint } = this.#missing ?? { what: 'an argument', hint: `see \`${this.path} --help\`` };
    return new UsageError(`\`${this.path}\` needs ${what}`, hint);
  }

  /** The words that call this command, with those of its parents. */
  get path(): string {
    return this.parent === null ? this.name() : `${(this.parent as CliCommand).path} ${this.name()}`;
  }

  get root(): CliCommand {
    return this.parent === null ? this : (this.parent as CliCommand).root;
  }

  /** The command that these words call, and how many of the words name it. */
  find(words: readonly string[]): { readonly command: CliCommand; readonly named: number } {
    const next = this.commands.find((each) => each.name() === words[0]) as CliCommand | undefined;
    if (next === undefined) return { command: this, named: 0 };
    const { command, named } = next.find(words.slice(1));
    return { command, named: named + 1 };
  }

  runs<Options>(run: (invocation: Invocation<Options>) => Promise<number>): this {
    return this.action(async () => {
      const { config, verbose = 0, logFile, view, quiet = false } = this.optsWithGlobals();
      setQuiet(quiet);
      const settings: GlobalOptions = { config, verbosity: verbose, logFile, view };
      const { args, root } = this;
      root.exitCode = await run({
        settings,
        words: args,
        behind: root.behind,
        options: this.opts<Partial<Options>>(),
        program: root,
      });
    });
  }
}
