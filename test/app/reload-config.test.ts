import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createPlatform } from '../../src/app/platform.js';
import { reloadOnChange } from '../../src/app/reload-config.js';
import { stampOf } from '../../src/config/file/find-config.js';
import type { Config } from '../../src/config/resolve/config.js';
import { folderWith } from '../config/files.js';
import { FakeClock } from '../support/fake-clock.js';
import { withPrograms } from '../support/load-config.js';
import { until } from '../support/processes.js';

/** Reads this file whenever it changes, until the test is finished. */
function reloading(file: string, stamp?: number) {
  const read: Config[] = [];
  const logged: string[] = [];
  const unchanged = { added: [], removed: [], replaced: [], adjusted: [], unchanged: [], gateway: [] };
  const clock = new FakeClock();
  const stop = reloadOnChange({
    settings: { config: undefined, verbosity: 0, logFile: undefined },
    composition: {
      platform: { ...createPlatform(), clock },
      change: (config) => {
        read.push(config);
        return { ...unchanged, isReordered: false, isOther: false, needsRestart: [] };
      },
      refuse: () => false,
    },
    logger: pino({ level: 'debug' }, { write: (line: string) => logged.push(line) }),
    read: { file, envFiles: [], ...(stamp !== undefined && { stamp }) },
    checkedFiles: undefined,
    origin: { environment: { SOME_KEY: '/own' }, folder: '/' },
  });
  onTestFinished(stop);
  return { read, clock, logged };
}

describe('a configuration file that is read again', () => {
  it('is resolved with the variables that Trunkline was started with, for every client by its own', async () => {
    const file = join(
      folderWith({ 'trunkline.yaml': `servers: { a: { command: "\${SOME_KEY}" } }` }),
      'trunkline.yaml',
    );
    const { read, clock } = reloading(file);
    clock.advance(1_000);
    await until('the file was read', () => read.length > 0);
    const [config] = read.map(withPrograms);
    expect(config?.servers[0]?.spec?.command).toBe('/own');
    const other = { environment: { SOME_KEY: '/other' }, folder: '/' };
    expect(config?.serverFor('a', other)?.spec?.command).toBe('/other');
  });

  it('F114: is also read again when one of its environment files changes', async () => {
    const text = `servers: { a: { command: node, env: { A: "\${TOKEN}" }, envFile: my.env } }`;
    const folder = folderWith({ 'trunkline.yaml': text, 'my.env': 'TOKEN=before\n' });
    chmodSync(join(folder, 'my.env'), 0o600);
    const { read, clock } = reloading(join(folder, 'trunkline.yaml'));
    clock.advance(1_000);
    // The environment file is watched after the configuration was read, which is read once more then.
    await until('both files are watched', () => read.length === 2);
    writeFileSync(join(folder, 'my.env'), 'TOKEN=after\n');
    await until('the environment file was read again', () => {
      clock.advance(100);
      return read.map(withPrograms).at(-1)?.servers[0]?.spec?.env.A === 'after';
    });
  });

  it('is read once as long as it does not change, so that commands for secrets run once', async () => {
    const text = (port: number) => `servers: { a: { command: node, args: ["${port}"] } }`;
    const file = join(folderWith({ 'trunkline.yaml': text(1) }), 'trunkline.yaml');
    const { read, clock, logged } = reloading(file, stampOf(file));
    clock.advance(1_000);
    await until('the file is watched', () => logged.some((line) => line.includes('watching the configuration file')));
    await nextTurn();
    expect(read).toEqual([]);
    writeFileSync(file, text(2));
    await until('the change is read', () => {
      clock.advance(1_000);
      return read.length > 0;
    });
    expect(read.map(withPrograms).map(({ servers }) => servers[0]?.spec?.args)).toEqual(read.map(() => ['2']));
  });

  it('is not read any more once it turns watching off', async () => {
    const text = (port: number) => `gateway: { watch: false }\nservers: { a: { command: node, args: ["${port}"] } }`;
    const file = join(folderWith({ 'trunkline.yaml': text(1) }), 'trunkline.yaml');
    const { read, clock, logged } = reloading(file);
    await until('watching has ended', () => logged.some((line) => line.includes('stopped watching')));
    writeFileSync(file, text(2));
    clock.advance(10_000);
    expect([read.length, clock.pending]).toEqual([1, 0]);
  });
});
