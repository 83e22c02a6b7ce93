import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Workplace } from '../cli/cli-run.js';

let work: Workplace;
beforeEach(() => {
  work = new Workplace();
  Object.assign(work.env, { XDG_DATA_HOME: join(work.folder, 'data'), PATH: '' });
});
afterEach(() => work.dispose());

const read = (name: string) => readFileSync(join(work.folder, name), 'utf8');
const NAMES = ['A', 'B', 'C', 'D', 'E', 'F'];

// `test/host/process/process-lock.test.ts` and `test/process/process-lock.test.ts` have the lock itself.
describe('commands at the same moment', () => {
  it('store every secret', async () => {
    const ends = await Promise.all(NAMES.map((name) => work.run(['secret', 'set', name], `value of ${name}`)));
    expect(ends.map(({ code }) => code)).toEqual(NAMES.map(() => 0));
    expect(Object.keys(JSON.parse(read('data/trunkline/secrets')))).toEqual(NAMES);
  });

  it('record every change of a client for undo', async () => {
    const clients = {
      cursor: '.cursor',
      'claude-code': '.claude',
      kiro: '.kiro',
      'lm-studio': '.lmstudio',
      kimi: '.kimi-code',
    };
    for (const folder of Object.values(clients)) mkdirSync(join(work.folder, folder));
    const names = Object.keys(clients);
    await Promise.all(names.map((client) => work.run(['connect', client])));
    const { changes } = JSON.parse(read('data/trunkline/client-changes.json')) as { changes: { client: string }[] };
    expect(changes.map(({ client }) => client).sort()).toEqual(names.sort());
  });

  it('add every server and its secrets', async () => {
    work.write('trunkline.yaml', 'servers: # mine\n  first: { command: node }\n');
    const ends = await Promise.all(
      NAMES.map((name) => work.run(['add', name, '--env', `TOKEN=${name}-9f8e7d6c5b4a3f2e1d`, '--', 'node'])),
    );
    expect(ends.map(({ code }) => code)).toEqual(NAMES.map(() => 0));
    expect(Object.keys((parse(read('trunkline.yaml')) as { servers: object }).servers).sort()).toEqual([
      ...NAMES,
      'first',
    ]);
    for (const name of NAMES) expect(read('trunkline.env')).toContain(`${name}-9f8e7d6c5b4a3f2e1d`);
  });
});
