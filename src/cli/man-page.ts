import type { Help, Option } from 'commander';
import { type CliCommand, EXIT_CODES } from './command.js';

/** The manual page `trunkline(1)` in troff. Commander gives the terms and descriptions, as it does for `--help`. */
export function manPage(program: CliCommand): string {
  const help = program.createHelp();
  const commands = help.visibleCommands(program) as CliCommand[];
  const headings = [...new Set(commands.map((each) => each.helpGroup()))];
  return [
    '.\\" Made by `npm run generate` from the table of commands.',
    '.TH TRUNKLINE 1 "" "Trunkline" "User Commands"',
    '.SH NAME',
    'trunkline \\- one MCP server in front of all your others',
    '.SH SYNOPSIS',
    `.B ${text(help.commandUsage(program))}`,
    '.SH DESCRIPTION',
    text(program.description()),
    '.SH OPTIONS OF ALL COMMANDS',
    ...help.visibleOptions(program).flatMap((each) => optionLines(each, help)),
    '.SH COMMANDS',
    ...headings.flatMap((heading) => [
      `.SS "${text(heading.replace(/:$/, ''))}"`,
      ...commands
        .filter((each) => each.helpGroup() === heading)
        .flatMap((each) => [each, ...(help.visibleCommands(each) as CliCommand[])])
        .flatMap((each) => commandLines(each, help)),
    ]),
    '.SH EXIT STATUS',
    '.nf',
    ...EXIT_CODES.map(text),
    '.fi',
    '.SH ENVIRONMENT',
    ...item('TRUNKLINE_CONFIG', 'the configuration, if --config names none'),
    ...item('NO_COLOR, FORCE_COLOR', 'turn colors off, or on everywhere'),
    '.SH FILES',
    ...item('trunkline.yaml', 'the configuration, in the current folder; not for a server that a client starts'),
    ...item('~/.config/trunkline/trunkline.yaml', 'the configuration of the user, on Linux and macOS'),
    ...item('%APPDATA%\\trunkline\\trunkline.yaml', 'the same on Windows'),
    '.SH SEE ALSO',
    text(
      'The pages in the folder docs of the package: configuration.md, commands.md, doctor.md, clients.md, hub.md, http.md.',
    ),
    '',
  ].join('\n');
}

function commandLines(command: CliCommand, help: Help): string[] {
  return [
    ...item(help.commandUsage(command), command.description()),
    '.RS',
    ...help.visibleArguments(command).flatMap((each) => item(help.argumentTerm(each), help.argumentDescription(each))),
    ...command.options.flatMap((each) => optionLines(each, help)),
    ...['.PP', '.nf', ...command.examples.map(text), '.fi', '.RE'],
  ];
}

function optionLines(option: Option, help: Help): string[] {
  return item(help.optionTerm(option), help.optionDescription(option));
}

function item(term: string, about: string): string[] {
  return ['.TP', `.B ${text(term)}`, text(about)];
}

/** Escapes the characters with a meaning in troff: a backslash, a hyphen, and a period or an apostrophe at the start of a line. */
function text(plain: string): string {
  const escaped = plain.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('…', '...');
  return escaped.replaceAll(/^(?=[.'])/gm, '\\&').replaceAll(/\n+/g, '\n.br\n');
}
