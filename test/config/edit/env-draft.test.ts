import {
  chmodSync,
  existsSync,
  lstatSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { canBeInEnv, EnvDraft } from '../../../src/config/edit/env-draft.js';
import { HAS_MODES, shownMode } from '../../support/platform.js';
import { folderWith } from '../files.js';

function openIn(files: Readonly<Record<string, string>>, configText?: string) {
  const folder = folderWith(files);
  for (const name of Object.keys(files)) chmodSync(join(folder, name), 0o600);
  return { folder, open: () => EnvDraft.open(join(folder, 'trunkline.yaml'), configText, '/home/ada') };
}

describe('the environment file beside a configuration', () => {
  it('is created for its owner alone, when there is something to write', () => {
    const { folder, open } = openIn({});
    const file = join(folder, 'trunkline.env');
    open().save();
    expect(existsSync(file)).toBe(false);
    const draft = open();
    expect([draft.put('A', 'x y'), draft.put('A', 'x y'), draft.put('A', 'z'), draft.envFile]).toEqual([
      ...['A', 'A', 'A_2'],
      'trunkline.env',
    ]);
    draft.save();
    expect(readFileSync(file, 'utf8')).toBe('A=x y\nA_2=z\n');
    expect(statSync(file).mode & 0o777).toBe(shownMode(0o600));
  });

  it('keeps what it has, and takes no value in twice', () => {
    const { folder, open } = openIn({ 'trunkline.env': '# mine\nexport A="1"' });
    const draft = open();
    expect([draft.put('A', '1'), draft.put('A', '2')]).toEqual(['A', 'A_2']);
    draft.save();
    expect(readFileSync(join(folder, 'trunkline.env'), 'utf8')).toBe('# mine\nexport A="1"\nA_2=2\n');
  });

  it('that is a symbolic link stays one, and what it leads to takes the values', () => {
    const { folder, open } = openIn({ 'trunkline.env': 'A=1\n' });
    const file = join(folder, 'trunkline.env');
    renameSync(file, join(folder, 'dotfiles.env'));
    symlinkSync('dotfiles.env', file);
    const draft = open();
    draft.put('B', '2');
    draft.save();
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'dotfiles.env'), 'utf8')).toBe('A=1\nB=2\n');
  });

  it('is the one that `defaults` names, if there is one', () => {
    const { folder, open } = openIn({}, 'defaults: { envFile: my.env }');
    expect(open()).toMatchObject({ file: join(folder, 'my.env'), envFile: undefined });
  });

  it.each([
    ['has a mistake', 'A', 0o600, /trunkline\.env:1: expected NAME=VALUE/],
    ['others can change', 'A=1', 0o666, /other users can change it\n {2}make it yours alone: chmod 600/],
  ])('that %s is refused', (_, text, mode, message) => {
    const { folder, open } = openIn({ 'trunkline.env': text });
    chmodSync(join(folder, 'trunkline.env'), mode);
    if (HAS_MODES || mode === 0o600) expect(open).toThrow(message);
    else expect(open).not.toThrow();
  });

  it('that was changed meanwhile is not written', () => {
    const { folder, open } = openIn({ 'trunkline.env': 'A=1\n' });
    const draft = open();
    draft.put('B', '2');
    writeFileSync(join(folder, 'trunkline.env'), 'A=3\n');
    expect(() => draft.save()).toThrow('changed by another program');
    expect(readFileSync(join(folder, 'trunkline.env'), 'utf8')).toBe('A=3\n');
  });
});

test('a value comes back as it was, or is said to be impossible', () => {
  const { open } = openIn({});
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '#', ' ', '"', "'", '`', '\\n', '\n', '\r', '$', '=') }),
      (value) => {
        fc.pre(canBeInEnv(value));
        const draft = open();
        draft.put('A', 'first');
        draft.put('B', value);
        draft.put('C', 'last');
        expect(parseEnv(draft.text)).toEqual({ A: 'first', B: value, C: 'last' });
      },
    ),
  );
  expect(canBeInEnv('plain "value" of \'two\' kinds')).toBe(true);
});
