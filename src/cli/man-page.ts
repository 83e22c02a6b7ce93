import { Help, type Option } from 'commander';
import type { CliCommand } from './command.js';
import { CommandHelp, EXIT_CODES } from './command-help.js';
import { PLAIN } from './terminal.js';

/** The manual page `trunkline(1)` in troff, made of what `--help` says of all commands. */
export function manPage(program: CliCommand): string {
  const help = new CommandHelp(PLAIN);
  const groups = help.groupItems([...program.commands], help.visibleCommands(program), (each) => each.helpGroup());
  const commands = [...groups]
    .filter(([, members]) => members.length > 0)
    .flatMap(([heading, members]) => [
      `.SS ${quoted(heading.replace(/:$/, ''))}`,
      ...members.flatMap((each) => withSubcommands(each as CliCommand)).flatMap((each) => commandLines(each, help)),
    ]);
  const [summary = '', ...about] = program.description().split('\n\n');
  return [
    '.\\" Made by `npm run man` from the table of commands.',
    '.TH TRUNKLINE 1 "" "Trunkline" "User Commands"',
    '.SH NAME',
    'trunkline \\- one MCP server in front of all your others',
    '.SH SYNOPSIS',
    `.B trunkline`,
    text('[COMMAND] [ARGUMENTS] [OPTIONS]'),
    '.SH DESCRIPTION',
    ...[summary, ...about].flatMap((paragraph, at) => [...(at > 0 ? ['.PP'] : []), text(paragraph)]),
    '.PP',
    text('Without a command, Trunkline serves an MCP client over stdin and stdout.'),
    '.SH OPTIONS OF ALL COMMANDS',
    ...help.visibleOptions(program).flatMap((each) => optionLines(each, help)),
    '.SH COMMANDS',
    ...commands,
    '.SH EXIT STATUS',
    ...EXIT_CODES.slice(1).flatMap(exitLines),
    '.SH ENVIRONMENT',
    ...VARIABLES.flatMap(([name, about]) => ['.TP', `.B ${text(name)}`, text(about)]),
    '.SH FILES',
    ...FILES.flatMap(([path, about]) => ['.TP', `.I ${text(path)}`, text(about)]),
    '.SH SEE ALSO',
    text(
      'The pages in the folder docs of the package: configuration.md, commands.md, doctor.md, clients.md, hub.md, http.md.',
    ),
    '',
  ].join('\n');
}

const VARIABLES = [
  ['TRUNKLINE_CONFIG', 'the configuration, if --config names none'],
  ['NO_COLOR, FORCE_COLOR', 'turn colors off, or on everywhere'],
] as const;

const FILES = [
  ['trunkline.yaml', 'the configuration, in the current folder'],
  ['~/.config/trunkline/trunkline.yaml', 'the configuration of the user, on Linux and macOS'],
  ['%APPDATA%\\trunkline\\trunkline.yaml', 'the same on Windows'],
] as const;

/** A command that only groups others stands before them. */
function withSubcommands(command: CliCommand): readonly CliCommand[] {
  return [command, ...(new Help().visibleCommands(command) as CliCommand[])];
}

function commandLines(command: CliCommand, help: CommandHelp): string[] {
  return [
    '.TP',
    `.B ${text(help.commandUsage(command))}`,
    text(help.commandDescription(command)),
    '.RS',
    ...help.visibleArguments(command).flatMap((each) => {
      return ['.TP', `.I ${text(help.argumentTerm(each))}`, text(help.argumentDescription(each))];
    }),
    ...help.visibleOptions(command).flatMap((each) => optionLines(each, help)),
    ...(command.examples.length === 0 ? [] : ['.PP', '.nf', ...command.examples.map(text), '.fi']),
    '.RE',
  ];
}

function optionLines(option: Option, help: CommandHelp): string[] {
  return ['.TP', `.B ${text(help.optionTerm(option))}`, text(help.optionDescription(option))];
}

/** `  0   all is well` as a term and its text; a line without a number as a paragraph. */
function exitLines(line: string): string[] {
  const [, code, about] = /^\s*(\d+)\s+(.*)$/.exec(line) ?? [];
  return code === undefined || about === undefined ? ['.PP', text(line.trim())] : ['.TP', `.B ${code}`, text(about)];
}

/** Text for troff: a backslash, a hyphen, and a period or an apostrophe at the start of a line mean something there. */
function text(plain: string): string {
  const escaped = plain.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('…', '...');
  return escaped.replaceAll(/^(?=[.'])/gm, '\\&').replaceAll(/\n+/g, '\n.br\n');
}

function quoted(heading: string): string {
  return `"${text(heading).replaceAll('"', '""')}"`;
}
