import { chmodSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { CacheFolder } from '../../src/state/cache-folder.js';
import {
  type InstructionsKey,
  MAX_INSTRUCTIONS_FILE_BYTES,
  readInstructions,
  writeInstructions,
} from '../../src/state/known-instructions.js';
import { folderWith } from '../config/files.js';
import { shownMode } from '../support/platform.js';

const KEY: InstructionsKey = {
  configFile: '/home/somebody/trunkline.yaml',
  profile: { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: { name: 'editor', version: '1' } },
};

const STAMP = { stamp: 7, offered: [{ extensions: { 'x/y': { z: 1 } } }] };

let place: string;
let folder: string;
beforeEach(() => {
  place = folderWith();
  folder = join(place, 'instructions');
});
const ignored: string[] = [];

async function write(text: string, key = KEY): Promise<void> {
  const cache = new CacheFolder({
    folder,
    maxFileBytes: MAX_INSTRUCTIONS_FILE_BYTES,
    maxFiles: 10,
    onIgnored: (_, reason) => ignored.push(reason),
    onFault: (error) => expect(error).toBeUndefined(),
  });
  writeInstructions(cache, key, { ...STAMP, text });
  await cache.settled();
}

/** The one file. */
function file(): string {
  const [name = '', ...others] = readdirSync(folder);
  expect(others).toEqual([]);
  return join(folder, name);
}

describe('cached instructions', () => {
  it('are those that were written for the same file and the same kind of client', async () => {
    await write('Be "good".\nAlways: 猫');
    expect(readInstructions(folder, KEY)).toEqual({ ...STAMP, text: 'Be "good".\nAlways: 猫' });
    const updated = { ...KEY.profile, clientInfo: { name: 'editor', version: '2' } };
    expect(readInstructions(folder, { ...KEY, profile: updated })?.text).toBe('Be "good".\nAlways: 猫');
  });

  it.each<[string, Partial<InstructionsKey>]>([
    ['another configuration file is used', { configFile: '/home/somebody/other.yaml' }],
    ['the client is another one', { profile: { ...KEY.profile, clientInfo: { name: 'chat' } } }],
    ['the client has other capabilities', { profile: { ...KEY.profile, capabilities: {} } }],
    ['the client has a view', { view: 'work' }],
    ['the client speaks another revision', { profile: { ...KEY.profile, protocolVersion: '2025-06-18' } }],
  ])('are not used when %s', async (_, others) => {
    await write('Be good.');
    expect(readInstructions(folder, { ...KEY, ...others })).toBeUndefined();
  });

  it('are not mixed up when two files have the same name by chance', async () => {
    await write('Be good.');
    const mine = file();
    await write('Be bad.', { ...KEY, configFile: '/home/somebody/other.yaml' });
    const others = readdirSync(folder)
      .map((name) => join(folder, name))
      .find((each) => each !== mine);
    renameSync(others ?? '', mine);
    expect(readInstructions(folder, KEY)).toBeUndefined();
  });

  it.each<[string, (path: string) => void]>([
    ['is cut off', (path) => writeFileSync(path, readFileSync(path).subarray(0, -5))],
    ['is empty', (path) => writeFileSync(path, '')],
    ['is no JSON', (path) => writeFileSync(path, 'rubbish')],
    ['has no text', (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('"Be good."', '7'))],
    [
      'is of another version',
      (path) => writeFileSync(path, readFileSync(path, 'utf8').replace(/"version":"[^"]*"/, '"version":"0.0.0"')),
    ],
    [
      'is too large',
      (path) => writeFileSync(path, readFileSync(path, 'utf8') + ' '.repeat(MAX_INSTRUCTIONS_FILE_BYTES)),
    ],
    ['can be read by others', (path) => chmodSync(path, 0o644)],
  ])('are not used when the file %s', async (what, spoil) => {
    await write('Be good.');
    spoil(file());
    // On Windows, the permissions of the folder decide.
    const isUsed = what === 'can be read by others' && process.platform === 'win32';
    expect(readInstructions(folder, KEY) !== undefined).toBe(isUsed);
  });

  it('are replaced by later ones, for this user alone', async () => {
    await write('Be good.');
    expect(statSync(file()).mode & 0o777).toBe(shownMode(0o600));
    await write('Be better.');
    expect(readInstructions(folder, KEY)?.text).toBe('Be better.');
  });

  it('are absent when there is no folder', () => {
    expect(readInstructions(join(folder, 'none'), KEY)).toBeUndefined();
  });
});
