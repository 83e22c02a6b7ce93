import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hubFiles, hubFolder, hubNumbers, inspectHubFolder, latestHub, numberOf } from '../../src/hub/hub-folder.js';

let base = '';

beforeEach(() => {
  base = mkdtempSync('/tmp/tlp-');
});

afterEach(() => rmSync(base, { recursive: true, force: true }));

const place = (hubsFolder: string, configFile = '/c.yaml', dataFolder = '/d') =>
  hubFolder({ configFile, dataFolder, hubsFolder });

describe('the folder of a hub', () => {
  it('is the same for the same configuration and data, and another one for others', () => {
    const hubs = join(base, 'hubs');
    const keys = [place(hubs), place(hubs), place(hubs, '/other.yaml'), place(hubs, '/c.yaml', '/other')];
    expect(new Set(keys).size).toBe(3);
    expect(keys[0]).toBe(keys[1]);
    expect(basename(keys[0] ?? '')).toMatch(/^[0-9a-f]{16}$/);
    for (const folder of [hubs, ...keys]) expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it('F109: is refused if others can enter it, or the folder that it is in', () => {
    const hubs = join(base, 'hubs');
    const own = place(hubs);
    chmodSync(own, 0o710);
    expect(() => place(hubs)).toThrow(`other users can enter the folder ${own}`);
    chmodSync(hubs, 0o701);
    expect(() => place(hubs)).toThrow(`other users can enter the folder ${hubs}`);
  });

  it('is found without being created, and with what is wrong with it', () => {
    const hubs = join(base, 'hubs');
    const options = { configFile: '/c.yaml', dataFolder: '/d', hubsFolder: hubs };
    expect(inspectHubFolder(options)).toEqual({ faults: [] });
    expect(existsSync(hubs)).toBe(false);
    const own = place(hubs);
    expect(inspectHubFolder(options)).toEqual({ folder: own, faults: [] });
    chmodSync(own, 0o710);
    expect(inspectHubFolder(options)).toEqual({ faults: [`other users can enter the folder ${own}`] });
  });

  it('is refused if it is a symbolic link or no folder', () => {
    mkdirSync(join(base, 'real'), { mode: 0o700 });
    symlinkSync(join(base, 'real'), join(base, 'link'));
    expect(() => place(join(base, 'link'))).toThrow('is a symbolic link');
    writeFileSync(join(base, 'file'), '');
    expect(() => place(join(base, 'file'))).toThrow('is not a folder');
  });

  it.runIf(process.getuid?.() === 0)('is refused if it belongs to another user', () => {
    const hubs = join(base, 'hubs');
    mkdirSync(hubs, { mode: 0o700 });
    chownSync(hubs, 12_345, 12_345);
    expect(() => place(hubs)).toThrow(`the folder ${hubs} belongs to another user`);
  });

  it('is refused if its path is too long for a socket, since Node would cut it', () => {
    expect(() => place(join(base, 'x'.repeat(80)))).toThrow('is too long for a socket');
  });

  it('is refused with the reason if it cannot be created', () => {
    writeFileSync(join(base, 'file'), '');
    const hubs = join(base, 'file', 'hubs');
    expect(() => place(hubs)).toThrow(`the folder ${hubs} cannot be created (ENOTDIR)`);
  });
});

describe('the numbers of hubs', () => {
  it('are those of the folders, by their value', () => {
    for (const name of ['10', '9', '.1-draft', '0', '01', 'x', '1234567890']) mkdirSync(join(base, name));
    expect([hubNumbers(base), latestHub(base)]).toEqual([[9, 10], 10]);
    expect(numberOf(hubFiles(base, 10).folder)).toBe(10);
  });
});
