import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { complete, type Names } from '../../src/cli/completion.js';
import { createProgram } from '../../src/cli/program.js';
import { cachedToolNames } from '../../src/state/catalogue-cache.js';

const NAMES: Names = {
  servers: async () => ['files', 'memory'],
  tools: async (server) => (server === 'files' ? ['read', 'write'] : ['recall']),
};

/** The candidates for a line; the last word is after the last space. */
async function candidates(line: string): Promise<string[]> {
  const found = await complete(createProgram(), line.split(' '), () => NAMES);
  return found.map(({ value }) => value);
}

describe('completion', () => {
  it.each([
    ['che', ['check']],
    ['hub ', ['status', 'stop', 'restart']],
    ['hub r', ['restart']],
    ['--config x.yaml sta', ['status']],
    ['restart ', ['files', 'memory']],
    ['restart files ', []],
    ['check files ', ['memory']],
    ['check --config x.yaml m', ['memory']],
    ['call ', ['files.read', 'files.write', 'memory.recall']],
    ['call files.r', ['files.read']],
    ['approve files ', ['read', 'write']],
    ['approve files read w', ['write']],
    ['logs --fo', ['--follow']],
    [
      'status --',
      ['--json', '--watch', '--gateway', '--help', '--config', '--verbose', '--log-file', '--quiet', '--version'],
    ],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['help hub st', ['status', 'stop']],
    ['schema --out ', []],
    ['nothing ', []],
  ])('of `%s` offers %j', async (line, expected) => {
    expect(await candidates(line)).toEqual(expected);
  });

  it('says what a command does, and leaves out the one that the scripts run', async () => {
    expect(await complete(createProgram(), ['compl'], () => NAMES)).toEqual([
      { value: 'completion', about: 'print a script that completes commands in a shell' },
    ]);
  });
});

describe('names of tools for suggestions', () => {
  it('are those of the newest cached catalogue of the server, also after a start that failed', () => {
    const folder = mkdtempSync(join(tmpdir(), 'trunkline-names-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    mkdirSync(folder, { recursive: true });
    const write = (name: string, at: number, ...tools: string[]) => {
      const lines = [
        { format: 1, lists: ['tools'] },
        { jsonrpc: '2.0', id: 0, result: { serverInfo: {} } },
        { jsonrpc: '2.0', id: 0, result: { tools: tools.map((tool) => ({ name: tool })) } },
      ];
      writeFileSync(join(folder, name), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
      utimesSync(join(folder, name), at, at);
    };
    const [one, two] = ['1'.repeat(32), '2'.repeat(32)];
    write(`files-${one}`, 1_000, 'old');
    write(`files-${two}`, 2_000, 'read', 'write');
    write(`files-more-${one}`, 3_000, 'other');
    writeFileSync(join(folder, `files-${'3'.repeat(32)}`), '{"missed":true}\n');
    expect(cachedToolNames(folder, 'files')).toEqual(['read', 'write']);
    expect(cachedToolNames(folder, 'memory')).toBeUndefined();
    expect(cachedToolNames(join(folder, 'none'), 'files')).toBeUndefined();
  });
});
