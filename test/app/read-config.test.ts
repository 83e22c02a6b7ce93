import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createPlatform } from '../../src/app/platform.js';
import { ConfigCache, reloadOnChange } from '../../src/app/read-config.js';
import { checkFile } from '../../src/config/file/check-file.js';
import { stateOf } from '../../src/config/file/find-config.js';
import type { Config } from '../../src/config/resolve/config.js';
import { resolveConfig } from '../../src/config/resolve/resolve-config.js';
import { CacheFolder } from '../../src/state/cache-folder.js';
import { folderWith } from '../config/files.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/processes.js';

/** Reads this file whenever it changes, until the test is finished. */
function reloading(file: string, state?: string) {
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
    read: { file, envFiles: [], ...(state !== undefined && { stamp: { state, checksum: 0 } }) },
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
    const [config] = read;
    expect(config?.servers[0]?.child?.command).toBe('/own');
    const other = { environment: { SOME_KEY: '/other' }, folder: '/' };
    expect(config?.serverFor('a', other)?.child?.command).toBe('/other');
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
      return read.at(-1)?.servers[0]?.child?.env.A === 'after';
    });
  });

  it('is read once as long as it does not change, so that commands for secrets run once', async () => {
    const text = (port: number) => `servers: { a: { command: node, args: ["${port}"] } }`;
    const file = join(folderWith({ 'trunkline.yaml': text(1) }), 'trunkline.yaml');
    const { read, clock, logged } = reloading(file, stateOf(file));
    clock.advance(1_000);
    await until('the file is watched', () => logged.some((line) => line.includes('watching the configuration file')));
    await nextTurn();
    expect(read).toEqual([]);
    writeFileSync(file, text(2));
    await until('the change is read', () => {
      clock.advance(1_000);
      return read.length > 0;
    });
    expect(read.map(({ servers }) => servers[0]?.child?.args)).toEqual(read.map(() => ['2']));
  });
});

const FILE = '/home/ada/trunkline.yaml';
const TEXT = `
servers:
  own: { command: node, args: ["--token", "canary-secret-1"], env: { KEY: "canary-secret-2", OTHER: "\${UNSET}" } }
  far: { url: "https://far.test/mcp" }
  lean: { command: node, timeout: 2m, idleStop: 5m, start: lazy, cwd: ./nowhere }
defaults: { concurrency: 3 }
gateway: { startLimit: 7 }
`;

function placeOf(part: string): [line: number, column: number] {
  const lines = TEXT.slice(0, TEXT.indexOf(part)).split('\n');
  return [lines.length, (lines.at(-1)?.length ?? 0) + 1];
}

async function keeping(secret = 'secret', folder = join(folderWith({}), 'checked')) {
  let keptCount = 0;
  const files = new CacheFolder({
    folder,
    maxFileBytes: 100_000,
    maxFiles: 4,
    onIgnored: () => {},
    onFault: (error) => {
      throw error;
    },
  });
  const onCached = () => {
    keptCount += 1;
  };
  const config = new ConfigCache({ folder: files, secret, onCached });
  return { folder, files, config, count: () => keptCount };
}

describe('a configuration that was checked before', () => {
  it('means the same as when it was checked, places of what is wrong included', async () => {
    const { config, files, count } = await keeping();
    const checked = checkFile(TEXT, FILE);
    config.put(FILE, TEXT, checked);
    await files.settled();
    const found = config.find(FILE, TEXT);
    expect(found).toEqual(checked);
    expect(count()).toBe(1);
    if (found === undefined) throw new Error('not found');
    const options = { env: { HOME: '/home/ada' }, nodePath: '/opt/node', ownFolder: '/opt/trunkline' };
    const resolved = resolveConfig(FILE, found, options);
    const expected = resolveConfig(FILE, checked, options);
    expect(resolved).toEqual({ ...expected, serverFor: expect.any(Function) });
    const [own, far, lean] = resolved.servers.map(({ problem }) => problem);
    expect([own, far, lean].map((problem) => [problem?.line, problem?.column])).toEqual([
      placeOf('"$'),
      placeOf('far:'),
      placeOf('./nowhere'),
    ]);
  });

  it.each([
    ['another text', FILE, `${TEXT} `, 'secret'],
    ['another file', `${FILE}2`, TEXT, 'secret'],
    ['another secret', FILE, TEXT, 'other'],
  ])('is not found for %s', async (_what, file, text, secret) => {
    const { config, files, folder } = await keeping();
    config.put(FILE, TEXT, checkFile(TEXT, FILE));
    await files.settled();
    const other = await keeping(secret, folder);
    expect(other.config.find(file, text)).toBeUndefined();
    expect(config.find(FILE, TEXT)).toBeDefined();
  });

  it('is not found when its file was changed, wherever, or cut', async () => {
    const { config, files, folder } = await keeping();
    config.put(FILE, TEXT, checkFile(TEXT, FILE));
    await files.settled();
    const [name = ''] = readdirSync(folder);
    const whole = readFileSync(join(folder, name));
    for (const at of [0, 13, 40, whole.length - 1]) {
      const changed = Buffer.from(whole);
      changed[at] = (changed[at] ?? 0) ^ 1;
      writeFileSync(join(folder, name), changed);
      expect(config.find(FILE, TEXT)).toBeUndefined();
    }
    for (const length of [0, 20, 28, whole.length - 1]) {
      writeFileSync(join(folder, name), whole.subarray(0, length));
      expect(config.find(FILE, TEXT)).toBeUndefined();
    }
  });

  it('reveals nothing without the text of the file', async () => {
    const { config, files, folder } = await keeping();
    config.put(FILE, TEXT, checkFile(TEXT, FILE));
    await files.settled();
    for (const name of readdirSync(folder)) {
      const content = `${name} ${readFileSync(join(folder, name), 'latin1')}`;
      expect(content).not.toMatch(/canary|trunkline|command|KEY/);
    }
  });
});
