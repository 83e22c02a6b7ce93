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
import { parse } from 'yaml';
import {
  type ConfigEdit,
  disabledByInit,
  editConfig,
  openConfig,
  saveConfig,
} from '../../../src/config/edit/edit-config.js';
import { ConfigError } from '../../../src/config/file/config-error.js';
import { shownMode } from '../../support/platform.js';
import { folderWith } from '../files.js';

const ENTRY = { package: '@a/files@1.2.3', args: ['--root', '.', '8080'], env: { LEVEL: 'no', KEY: '$' + '{KEY}' } };

const edited = (text: string, edit: ConfigEdit) => editConfig(text, 'trunkline.yaml', edit);
const added = (text: string, key = 'new', comment?: string) =>
  edited(text, { kind: 'add', key, entry: ENTRY, comment });
const removed = (text: string, key = 'new') => edited(text, { kind: 'remove', key });
const disabled = (text: string, key: string, isDisabled = true) => edited(text, { kind: 'disable', key, isDisabled });

const lines = (...each: string[]) => `${each.join('\n')}\n`;

const COMMENTED = lines(
  '# My servers',
  'servers:',
  '    # For the project',
  '    files: &base',
  '        command: node   # not bun',
  '        args: [ \'a\',  "b" ]',
  '        # args: old',
  '  # behind the servers',
  '',
  'defaults: {timeout: 90s}',
);

describe('a server that is added', () => {
  it('stands behind the others, in their indentation, and changes nothing else', () => {
    expect(added(COMMENTED, 'new', 'in a client: "New\nOne"')).toBe(
      COMMENTED.replace(
        '        # args: old\n',
        lines(
          '        # args: old',
          '    new: # in a client: "New\\u{a}One"',
          '        package: "@a/files@1.2.3"',
          '        args: [--root, ., "8080"]',
          '        env:',
          '            LEVEL: no',
          `            KEY: \${KEY}`,
        ),
      ),
    );
  });

  it.each([
    ['an empty file', '', 'servers:\n  new:\n'],
    ['comments only', '# hello', '# hello\nservers:\n  new:\n'],
    ['no servers', 'gateway: { hub: off }\n', 'gateway: { hub: off }\nservers:\n  new:\n'],
    ['nothing below `servers`', 'servers: # mine\n  # later: x\n', 'servers: # mine\n  # later: x\n  new:\n'],
    ['no line break at the end', 'servers:\n  a: {command: b}', 'servers:\n  a: {command: b}\n  new:\n'],
    ['line breaks of Windows', 'servers:\r\n  a: {command: b}\r\n', 'servers:\r\n  a: {command: b}\r\n  new:\r\n'],
    ['braces', 'servers: {a: {command: b}} # x\n', 'servers: {a: {command: b}, "new": { "package":'],
    ['empty braces', 'servers: {} # x\n', 'servers: # x\n  new:\n'],
    ['empty braces in braces', '{ servers: {} }\n', '{ servers: { "new": { "package":'],
  ])('can be the first one in a file with %s', (_, before, start) => {
    const text = added(before);
    expect(text.slice(0, start.length)).toBe(start);
    expect(parse(text).servers.new).toEqual(ENTRY);
  });

  it.each(['', 'gateway: { hub: off }\n', 'servers:\n'])(
    'has its comment also when it is the first one: %j',
    (before) => {
      expect(added(before, 'new', 'in a client')).toContain('servers:\n  new: # in a client\n    package:');
    },
  );

  it('is indented as the others are in JSON', () => {
    const text = `${JSON.stringify({ mcpServers: { a: { command: 'b' } }, other: [1] }, undefined, '\t')}\n`;
    const expectedText = { mcpServers: { a: { command: 'b' }, new: ENTRY }, other: [1] };
    expect(added(text)).toBe(`${JSON.stringify(expectedText, undefined, '\t')}\n`);
    expect(removed(added(text))).toBe(text);
  });
});

describe('a server that is removed', () => {
  it('takes its lines with it, and the comments in them', () => {
    const text = lines(
      'servers:',
      '  # first',
      '  a:',
      '    command: x',
      '    # why',
      '  # second',
      '  b: { command: y }',
    );
    expect(removed(text, 'a')).toBe(lines('servers:', '  # first', '  # second', '  b: { command: y }'));
    expect(removed(text, 'b')).toBe(text.replace('  b: { command: y }\n', ''));
  });

  it.each([
    ['a', 'servers: { b: {command: y}, c: {command: z} }\n'],
    ['b', 'servers: { a: {command: x}, c: {command: z} }\n'],
    ['c', 'servers: { a: {command: x}, b: {command: y} }\n'],
  ])('in braces takes one comma with it: %s', (key, expectedText) => {
    expect(removed('servers: { a: {command: x}, b: {command: y}, c: {command: z} }\n', key)).toBe(expectedText);
  });
});

describe('a server that is disabled', () => {
  it('has the reason of `trunkline init` as a comment, until the user disables it', () => {
    const text = 'servers:\n  a:\n    command: x\n';
    const byInit = edited(text, { kind: 'disable', key: 'a', isDisabled: true, because: 'no network' });
    expect([...disabledByInit(byInit)]).toEqual([['a', 'no network']]);
    expect(disabled(byInit, 'a')).toBe(`${text}    disabled: true\n`);
    expect(disabled(byInit, 'a', false)).toBe(text);
  });

  it.each([
    ['servers:\n  a:\n    command: x\n    # why\n', 'servers:\n  a:\n    command: x\n    disabled: true\n    # why\n'],
    ['servers:\n  a: { command: x }\n', 'servers:\n  a: { command: x, "disabled": true }\n'],
    ['{"servers":{"a":{"command":"x"}}}', '{"servers":{"a":{"command":"x","disabled": true}}}'],
  ])('is marked so, and enabling it restores the text: %j', (text, expectedText) => {
    expect(disabled(text, 'a')).toBe(expectedText);
    expect(disabled(expectedText, 'a', false)).toBe(text);
  });

  it('keeps the comment that says why', () => {
    const text = 'servers:\n  a:\n    disabled: true # broken since May\n    command: x\n';
    expect(disabled(text, 'a', false)).toBe(text.replace('true', 'false'));
    expect(disabled(text, 'a')).toBe(text);
    expect(disabled(disabled(text, 'a', false), 'a')).toBe(text);
  });

  it('stays as it is when there is nothing to change', () => {
    expect(disabled(COMMENTED, 'files', false)).toBe(COMMENTED);
  });
});

describe('an edit', () => {
  it.each<[string, ConfigEdit]>([
    ['servers: &all\n  a: &a\n    command: x\n  b: *a\n', { kind: 'disable', key: 'b', isDisabled: true }],
    ['servers: &all\n  a: &a\n    command: x\n  b: *a\n', { kind: 'disable', key: 'a', isDisabled: true }],
    ['servers: &all\n  a: &a\n    command: x\n  b: *a\n', { kind: 'remove', key: 'a' }],
    ['servers:\n  ? a\n  : command: x\n  b: { command: y }\n', { kind: 'remove', key: 'a' }],
  ])('F116: that would change more than its server is refused: %j', (text, edit) => {
    expect(() => edited(text, edit)).toThrow(/cannot edit without changing more than/);
  });

  it.each(['servers:\n  a: { command: x\n', 'servers:\n\ta: { command: x }\n'])(
    'of a text with mistakes reports them: %j',
    (text) => {
      expect(() => disabled(text, 'a')).toThrow(/^trunkline\.yaml:\d+:\d+: /);
      expect(() => added(text)).toThrow(/^trunkline\.yaml:\d+:\d+: /);
    },
  );

  it('of an unknown server names the nearest one', () => {
    const attempt = () => removed('servers:\n  files: { command: x }\n', 'filse');
    expect(attempt).toThrow(ConfigError);
    expect(attempt).toThrow('there is no server `filse`\n  did you mean `files`?');
  });
});

const TEXT = 'servers: { a: { command: x } }\n';
const EDITED = 'servers: { a: { command: y } }\n';

describe('an edited configuration', () => {
  it('is created with its folder, for its owner alone', () => {
    const file = join(folderWith(), 'deeper', 'trunkline.yaml');
    saveConfig(openConfig(file), TEXT);
    expect(readFileSync(file, 'utf8')).toBe(TEXT);
    expect(statSync(file).mode & 0o777).toBe(shownMode(0o600));
  });

  it('keeps its mode and its symbolic link', () => {
    const folder = folderWith({ 'real.yaml': TEXT });
    const link = join(folder, 'trunkline.yaml');
    symlinkSync('real.yaml', link);
    chmodSync(link, 0o664);
    saveConfig(openConfig(link), EDITED);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'real.yaml'), 'utf8')).toBe(EDITED);
    expect(statSync(link).mode & 0o777).toBe(shownMode(0o664));
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
