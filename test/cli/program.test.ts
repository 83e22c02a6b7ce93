import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Help } from 'commander';
import { afterEach, describe, expect, it } from 'vitest';
import type { CliCommand } from '../../src/cli/command.js';
import { helpText } from '../../src/cli/command-help.js';
import { readCommandLine } from '../../src/cli/command-line.js';
import { setQuiet } from '../../src/cli/output.js';
import { createProgram, runProgram } from '../../src/cli/program.js';
import { UsageError } from '../../src/errors/usage-error.js';

const program = createProgram();

function allCommands(command: CliCommand): CliCommand[] {
  return [command, ...new Help().visibleCommands(command).flatMap((each) => allCommands(each as CliCommand))];
}

function mistakeIn(...args: string[]): string {
  try {
    readCommandLine(createProgram(), args);
  } catch (error) {
    if (error instanceof UsageError) return `${error.message}; ${error.hint}`;
  }
  return 'none';
}

describe('the help', () => {
  it.each(allCommands(program).map((command) => [command.path, command] as const))(
    'of `%s` has a description, examples and exit codes, and fits into 80 columns',
    (path, command) => {
      const text = helpText(command, { width: 80, isColored: false });
      expect(command.description()).not.toBe('');
      expect(command.examples.length).toBeGreaterThan(0);
      expect(text.startsWith(`Usage: ${path.replace(' serve', ' [serve]')} `)).toBe(true);
      for (const heading of ['Examples:', 'Exit codes:', '-c, --config FILE']) expect(text).toContain(heading);
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
    [['tools', 'files', '--json'], 'trunkline tools', ['tools', 'files', '--json']],
    [['--json', 'tools', 'files'], 'trunkline tools', ['tools', '--json', 'files']],
    [['-c', 'x.yaml', 'hub', '--json', 'status'], 'trunkline hub status', ['hub', 'status', '-c', 'x.yaml', '--json']],
    [['--out', 'check', 'schema'], 'trunkline schema', ['schema', '--out', 'check']],
    [['call', 'a', '--', '-x'], 'trunkline call', ['call', 'a', '--', '-x']],
    [['check', 'check'], 'trunkline check', ['check', 'check']],
  ])('%j may have its options anywhere', (args, path, ordered) => {
    const line = readCommandLine(createProgram(), args);
    expect([line.command.path, line.args]).toEqual([path, ordered]);
  });

  it.each([
    [['chekc'], 'there is no command `chekc`; did you mean `check`?'],
    [['hub', 'sotp'], 'none'],
    [['--confg', 'x'], 'there is no option `--confg`; did you mean `--config`?'],
    [['--jsn', 'tols'], 'there is no option `--jsn`; did you mean `--json`?'],
    [['restart', '--zzz'], 'there is no option `--zzz`; see `trunkline --help`'],
    [['restart', '--follow'], '`trunkline restart` takes no `--follow`; see `trunkline restart --help`'],
    [['hub', 'status', '--all'], '`trunkline hub status` takes no `--all`; see `trunkline hub status --help`'],
    [['--http'], '`--http` needs a value; write `--http [HOST:]PORT`'],
    [['logs', '--follow=yes'], '`--follow` takes no value; write `--follow` alone'],
  ])('%j is explained', (args, message) => {
    expect(mistakeIn(...args)).toBe(message);
  });
});

describe('serving', () => {
  // Other files of tests share the modules of this process.
  afterEach(() => setQuiet(false));

  it.each([[['serve', '-q']], [['--quiet']]])('%j is refused, because its log is all that it writes', async (args) => {
    await expect(runProgram(args)).rejects.toThrow('`trunkline serve` takes no `--quiet`');
  });
});

describe('the page of the commands', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/commands.md'), 'utf8');
  const leaves = allCommands(program).filter(({ commands }) => commands.length === 0);

  it.each(leaves.map((command) => [command.path, command] as const))(
    'has a row for `%s` with its options',
    (path, command) => {
      const row = page.split('\n').find((line) => line.startsWith(`| \`${path}\` |`)) ?? '';
      const options = [...(row.split('|').at(-2) ?? '').matchAll(/`(--[\w-]+)`/g)].map(([, option]) => option);
      expect(options).toEqual(command.options.map(({ long }) => long));
    },
  );

  it('offers JSON for every command whose output is not something else', () => {
    const without = leaves.filter(({ options }) => !options.some(({ long }) => long === '--json'));
    const names = without.map(({ path }) => path.replace('trunkline ', ''));
    expect(names).toEqual(['serve', 'schema', 'completion', 'help']);
  });

  it('has the shape of every JSON', () => {
    const shapes = page.slice(page.indexOf('## JSON'));
    const withJson = leaves.filter(({ options }) => options.some(({ long }) => long === '--json'));
    for (const { path } of withJson) expect(shapes).toContain(`\`${path.replace('trunkline ', '')}\``);
  });
});
