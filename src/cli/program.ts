import { CommanderError } from 'commander';
import { UsageError } from '../errors/usage-error.js';
import { VERSION } from '../version.js';
import { CliCommand } from './command.js';
import { helpText } from './command-help.js';
import { excessArguments, missingCommand, readCommandLine, unknownCommand, wrongChoice } from './command-line.js';
import { addCommands } from './commands.js';
import { print } from './output.js';
import { lookOf } from './terminal.js';

/** The command line of Trunkline. Nothing that a command needs to run is loaded yet. */
export function createProgram(): CliCommand {
  const program = new CliCommand('trunkline');
  program
    .description(
      `Trunkline is one MCP server in front of all your others: it runs your stdio MCP servers as supervised processes and offers their tools as one list.

Without --config, Trunkline uses the file named by the variable TRUNKLINE_CONFIG, or trunkline.yaml in the current folder, or trunkline.yaml in your configuration folder.`,
    )
    .option('-c, --config <FILE>', 'use this configuration')
    .option('-v, --verbose', 'log events to stderr; -vv logs everything', (_, earlier: number) => earlier + 1, 0)
    .option('--log-file <FILE>', 'append the log to this file instead')
    .option('-q, --quiet', 'print results and failures only: no progress, and nothing about success; not for serve')
    .option('--version', 'print the version')
    .option('-h, --help', 'print this help')
    .example('trunkline check', 'trunkline tools files', 'trunkline call files.read_text_file path=notes.txt')
    .example('trunkline --config ~/servers.yaml')
    .helpOption(false)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeErr: () => {}, writeOut: () => {} });
  addCommands(program);
  return program;
}

/** Runs a command other than serving, and returns the exit code. Throws a `UsageError` for a wrong command line. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const program = createProgram();
  const line = readCommandLine(program, args);
  if (line.isVersionWanted || line.isHelpWanted) {
    await print(line.isVersionWanted ? VERSION : helpText(line.command, lookOf(process.stdout)));
    return 0;
  }
  program.behind = line.behind;
  try {
    await program.parseAsync(line.args, { from: 'user' });
  } catch (error) {
    throw error instanceof CommanderError ? explain(error, line.command) : error;
  }
  return program.exitCode;
}

/** A mistake that commander finds: the options are checked before. */
function explain({ code, message }: CommanderError, command: CliCommand): UsageError {
  switch (code) {
    case 'commander.excessArguments':
      return excessArguments(command);
    case 'commander.missingArgument':
      return command.withoutArgument;
    case 'commander.unknownCommand':
      return unknownCommand(command, command.args[0] ?? '');
    case 'commander.help':
      return missingCommand(command);
    default:
      return (
        wrongChoice(command) ??
        new UsageError(message.replace(/^error: /, '').replace(/\.$/, ''), `see \`${command.path} --help\``)
      );
  }
}
