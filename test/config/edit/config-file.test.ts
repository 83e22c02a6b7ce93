import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openConfig, saveConfig } from '../../../src/config/edit/config-file.js';
import { folderWith } from '../files.js';

const TEXT = 'servers: { a: { command: x } }\n';
const EDITED = 'servers: { a: { command: y } }\n';

describe('an edited configuration', () => {
  it('is created with its folder, for its owner alone', () => {
    const file = join(folderWith(), 'deeper', 'trunkline.yaml');
    saveConfig(openConfig(file), TEXT);
    expect(readFileSync(file, 'utf8')).toBe(TEXT);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it('keeps its mode and its symbolic link', () => {
    const folder = folderWith({ 'real.yaml': TEXT });
    const link = join(folder, 'trunkline.yaml');
    symlinkSync('real.yaml', link);
    chmodSync(link, 0o664);
    saveConfig(openConfig(link), EDITED);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'real.yaml'), 'utf8')).toBe(EDITED);
    expect(statSync(link).mode & 0o777).toBe(0o664);
    expect(readdirSync(folder).sort()).toEqual(['real.yaml', 'trunkline.yaml']);
  });

  it('is not written where a symbolic link leads nowhere, and the message says so', () => {
    const link = join(folderWith(), 'trunkline.yaml');
    symlinkSync('absent.yaml', link);
    expect(() => saveConfig(openConfig(link), TEXT)).toThrow('is a symbolic link that leads nowhere');
  });

  it('F116: with a mistake is not written', () => {
    const file = join(folderWith({ 'trunkline.yaml': TEXT }), 'trunkline.yaml');
    expect(() => saveConfig(openConfig(file), 'servers: { a: { comand: x } }')).toThrow('did you mean `command`?');
    expect(readFileSync(file, 'utf8')).toBe(TEXT);
  });

  it('reports the mistakes that the file had before', () => {
    const file = join(folderWith({ 'trunkline.yaml': '\n\ngatway: {}\n' }), 'trunkline.yaml');
    expect(() => saveConfig(openConfig(file), 'servers: { a: 1 }\n\n\ngatway: {}\n')).toThrow(':3:1: unknown key');
  });

  it('F115: is not written over what another program has written meanwhile', () => {
    const file = join(folderWith({ 'trunkline.yaml': TEXT }), 'trunkline.yaml');
    const open = openConfig(file);
    writeFileSync(file, `${TEXT}# mine\n`);
    expect(() => saveConfig(open, EDITED)).toThrow('changed by another program');
    expect(readFileSync(file, 'utf8')).toBe(`${TEXT}# mine\n`);
    const absent = openConfig(`${file}.new`);
    writeFileSync(`${file}.new`, TEXT);
    expect(() => saveConfig(absent, EDITED)).toThrow('changed by another program');
    expect(existsSync(`${file}.new`)).toBe(true);
  });
});
