import { CommanderError } from 'commander';
import { UsageError } from '../errors/usage-error.js';
import { VERSION } from '../version.js';
import { CliCommand, type DefineCommand } from './command.js';
import { helpText } from './command-help.js';
import { excessArguments, missingCommand, readCommandLine, unknownCommand, wrongChoice } from './command-line.js';
import { activityCommand } from './commands/activity.js';
import { addCommand } from './commands/add.js';
import { approveCommand } from './commands/approve.js';
import { callCommand } from './commands/call.js';
import { disableCommand, enableCommand, removeCommand } from './commands/change-server.js';
import { checkCommand } from './commands/check.js';
import { completionCommand } from './commands/completion.js';
import { connectCommand, disconnectCommand, undoCommand } from './commands/connect.js';
import { doctorCommand } from './commands/doctor.js';
import { helpCommand } from './commands/help.js';
import { hubCommand } from './commands/hub.js';
import { importCommand } from './commands/import.js';
import { initCommand } from './commands/init.js';
import { inspectCommand } from './commands/inspect.js';
import { installCommand } from './commands/install.js';
import { logsCommand } from './commands/logs.js';
import { outdatedCommand } from './commands/outdated.js';
import { psCommand } from './commands/ps.js';
import { recordCommand } from './commands/record.js';
import { replayCommand } from './commands/replay.js';
import { restartCommand } from './commands/restart.js';
import { schemaCommand } from './commands/schema.js';
import { secretCommand } from './commands/secret.js';
import { serveCommand } from './commands/serve.js';
import { statusCommand } from './commands/status.js';
import { stopCommand } from './commands/stop.js';
import { tokenCommand } from './commands/token.js';
import { toolsCommand } from './commands/tools.js';
import { updateCommand } from './commands/update.js';
import { print } from './output.js';
import { lookOf } from './terminal.js';

/** All commands, in the order of the overview. Each is one file in `commands`. */
const COMMANDS: readonly DefineCommand[] = [
  ...[serveCommand, checkCommand, toolsCommand, callCommand, approveCommand],
  ...[statusCommand, psCommand, logsCommand, restartCommand, stopCommand, hubCommand],
  ...[activityCommand, inspectCommand, recordCommand, replayCommand],
  ...[addCommand, removeCommand, enableCommand, disableCommand, secretCommand],
  ...[initCommand, importCommand, connectCommand, disconnectCommand, undoCommand],
  ...[installCommand, updateCommand, outdatedCommand],
  ...[doctorCommand, schemaCommand, tokenCommand, completionCommand, helpCommand],
];

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
  for (const define of COMMANDS) define(program);
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
