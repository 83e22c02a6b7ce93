import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../support/load-config.js';

const FOLDER = join(import.meta.dirname, '../../../config');
const OPTIONS = { env: { HOME: '/home/ada' }, nodePath: process.execPath };

describe.each(['example.yaml', 'demo.yaml'])('config/%s', (name) => {
  test('loads without warnings when no variable but HOME is set', () => {
    const { servers, warnings } = loadConfig(join(FOLDER, name), OPTIONS);
    expect(warnings).toStrictEqual([]);
    expect(servers.length).toBeGreaterThan(1);
  });

  test('tells editors where the schema is, on its first line', () => {
    const [first] = readFileSync(join(FOLDER, name), 'utf8').split('\n');
    expect(first).toBe('# yaml-language-server: $schema=./trunkline.schema.json');
    expect(existsSync(join(FOLDER, 'trunkline.schema.json'))).toBe(true);
  });
});

describe('config/demo.yaml', () => {
  const { servers } = loadConfig(join(FOLDER, 'demo.yaml'), OPTIONS);

  test('has the three servers of the demonstration', () => {
    expect(servers.map(({ key }) => key)).toStrictEqual(['everything', 'files', 'memory']);
  });

  test('runs programs that `npm install` has brought', () => {
    const programs = servers.map(({ spec }) => resolve(spec?.cwd ?? '', spec?.args[0] ?? ''));
    expect(programs.filter((program) => !existsSync(program))).toStrictEqual([]);
    const memory = servers[2];
    expect(memory?.spec?.env).toStrictEqual({ MEMORY_FILE_PATH: '/tmp/trunkline-demo-memory.jsonl' });
  });
});
