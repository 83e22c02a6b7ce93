import { type Command, CommanderError } from 'commander';
import { EXIT } from '../errors/usage-error.js';
import { VERSION } from '../version.js';
import { CliCommand, EXIT_CODES, heading, indented } from './command.js';
import { addCommands } from './commands.js';
import { flushed, tell } from './output.js';

/** The most columns of a line that is easy to read. */
const MAX_WIDTH = 100;
const DEFAULT_WIDTH = 80;

/** The command line of Trunkline. The work of the commands is not loaded yet. */
export function createProgram(): CliCommand {
  const program = new CliCommand('trunkline');
  program
    .description(
      `Trunkline is one MCP server in front of all your others: it runs your stdio MCP servers as supervised processes and offers their tools as one list. Without a command, it serves an MCP client over stdin and stdout.

Without --config, Trunkline uses the file named by the variable TRUNKLINE_CONFIG, or trunkline.yaml in the current folder, or trunkline.yaml in your configuration folder.`,
    )
    .option('-c, --config <FILE>', 'use this configuration')
    .option('-v, --verbose', 'log events to stderr; -vv logs everything', (_, earlier: number) => earlier + 1, 0)
    .option('--log-file <FILE>', 'append the log to this file instead')
    .option('-q, --quiet', 'print results and failures only: no progress, and nothing about success; not for serve')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .example('trunkline check', 'trunkline tools files', 'trunkline call files.read_text_file path=notes.txt')
    .example('trunkline --config ~/servers.yaml')
    .addHelpText('afterAll', () => `\n${heading('Exit codes:')}\n${indented(EXIT_CODES)}`)
    .configureHelp({ showGlobalOptions: true, styleTitle: heading, subcommandTerm })
    .configureOutput({
      getOutHelpWidth: () => Math.min(process.stdout.columns || DEFAULT_WIDTH, MAX_WIDTH),
      writeErr: (text) => tell(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, 'trunkline: ')),
    })
    .exitOverride();
  addCommands(program);
  return program;
}

/** A command in a list of commands: without `[options]`, which all have. */
function subcommandTerm(command: Command): string {
  return `${command.name()} ${command.usage().replace('[options]', '').trim()}`.trimEnd();
}

/** Runs a command other than serving, and returns the exit code. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const program = createProgram();
  const end = args.indexOf('--');
  if (end >= 0) program.behind = args.slice(end + 1);
  try {
    await program.parseAsync(args, { from: 'user' });
    return program.exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // The help and the version end the program with 0, a mistake with 1.
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  } finally {
    await flushed();
  }
}
