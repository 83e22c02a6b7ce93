import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkFile } from '../../src/config/file/check-file.js';
import { resolveConfig } from '../../src/config/resolve/resolve-config.js';
import { CacheFolder } from '../../src/state/cache-folder.js';
import { ConfigCache } from '../../src/state/config-cache.js';
import { folderWith } from '../config/files.js';

const FILE = '/home/ada/trunkline.yaml';
const TEXT = `
servers:
  own: { command: node, args: ["--token", "canary-secret-1"], env: { KEY: "canary-secret-2", OTHER: "\${UNSET}" } }
  far: { url: "https://far.test/mcp", headers: { A: b, Authorization: "Bearer \${UNSET}" } }
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
      placeOf('"Bearer'),
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
