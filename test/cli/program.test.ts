import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Help } from 'commander';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { commandsPage } from '../../scripts/commands.mjs';
import type { CliCommand } from '../../src/cli/command.js';
import { setQuiet } from '../../src/cli/output.js';
import { createProgram, runProgram } from '../../src/cli/program.js';

const program = createProgram();
const PAGE = join(import.meta.dirname, '../../docs/commands.md');

function allCommands(command: CliCommand): CliCommand[] {
  return [command, ...new Help().visibleCommands(command).flatMap((each) => allCommands(each as CliCommand))];
}

/** The text of `--help`, as for a terminal of 80 columns. */
function helpOf(command: CliCommand): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => (text += part),
    getOutHelpWidth: () => 80,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text;
}

/** The message for a command line with a mistake. */
async function mistakeIn(...args: string[]): Promise<string> {
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    expect(await runProgram(args)).toBe(2);
    return stderr.mock.calls.map(([text]) => text).join('');
  } finally {
    stderr.mockRestore();
  }
}

describe('the help', () => {
  it.each(allCommands(program).map((command) => [command.path, command] as const))(
    'of `%s` has a description, examples and exit codes, and fits into 80 columns',
    (path, command) => {
      const text = helpOf(command);
      expect(command.description()).not.toBe('');
      expect(command.examples.length).toBeGreaterThan(0);
      expect(text.startsWith(`Usage: ${path} [options]`)).toBe(true);
      for (const heading of ['Examples:', 'Exit codes:', '-c, --config <FILE>']) expect(text).toContain(heading);
      const wrapped = text.slice(0, text.indexOf('Examples:'));
      expect(wrapped.split('\n').filter((line) => line.length > 80)).toEqual([]);
    },
  );

  it('says of every command in a few words what it does, under a heading', () => {
    for (const command of allCommands(program).slice(1)) {
      expect(command.summary()).toMatch(/^[a-z].*[^.]$/);
      if (command.parent === program) expect(command.helpGroup()).toMatch(/^[A-Z].*:$/);
    }
  });
});

describe('a command line', () => {
  it.each([
    [['chekc'], "unknown command 'chekc'\n(Did you mean check?)\n"],
    [['frobnicate'], "unknown command 'frobnicate'\n"],
    [
      ['servers.yaml'],
      "unknown command 'servers.yaml'\nTo use this configuration, run: trunkline --config servers.yaml\n",
    ],
    [['help', 'tols'], "unknown command 'tols'\n(Did you mean tools?)\n"],
    [['hub', 'sotp'], "unknown command 'sotp'\n(Did you mean stop?)\n"],
    [['--confg', 'x'], "unknown option '--confg'\n(Did you mean --config?)\nSee `trunkline serve --help`.\n"],
    [['restart', '--zzz'], "unknown option '--zzz'\nSee `trunkline restart --help`.\n"],
    [['check', '--config'], "option '-c, --config <FILE>' argument missing\n"],
    [['call'], "missing required argument 'TOOL'\nSee `trunkline call --help`.\n"],
    [
      ['completion', 'tcsh'],
      "command-argument value 'tcsh' is invalid for argument 'SHELL'. Allowed choices are bash, zsh, fish.\n",
    ],
  ])('%j is explained', async (args, message) => {
    expect(await mistakeIn(...args)).toContain(`trunkline: ${message}`);
  });
});

describe('serving', () => {
  // Other files of tests share the modules of this process.
  afterEach(() => setQuiet(false));

  it.each([
    [['serve', '-q'], '`trunkline serve` takes no `--quiet`'],
    [['--quiet'], '`trunkline serve` takes no `--quiet`'],
    [['serve', 'now'], '`trunkline serve` takes no arguments'],
    [['--config', '-v'], 'the value of an option begins with `-`'],
  ])('%j is refused', async (args, message) => {
    await expect(runProgram(args)).rejects.toThrow(message);
  });
});

describe('the page of the commands', () => {
  const page = readFileSync(PAGE, 'utf8');
  const leaves = allCommands(program).filter(({ commands }) => commands.length === 0);

  it('has the commands of the program, as `npm run generate` writes them', async () => {
    await expect(commandsPage(page, program)).toMatchFileSnapshot(PAGE);
  });

  it('offers JSON for every command whose output is not something else', () => {
    const without = leaves.filter(({ options }) => !options.some(({ long }) => long === '--json'));
    const names = without.map(({ path }) => path.replace('trunkline ', ''));
    expect(names).toEqual(['serve', 'web', 'metrics', 'schema', 'completion', 'help']);
  });

  it('has the shape of every JSON', () => {
    const shapes = page.slice(page.indexOf('## JSON'));
    const withJson = leaves.filter(({ options }) => options.some(({ long }) => long === '--json'));
    for (const { path } of withJson) expect(shapes).toContain(`\`${path.replace('trunkline ', '')}\``);
  });
});
