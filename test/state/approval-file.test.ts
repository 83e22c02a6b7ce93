import { chmodSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ApprovalFile, ApprovalFileError, digestOf, withApproved } from '../../src/state/approval-file.js';
import { folderWith } from '../config/files.js';

let file: ApprovalFile;
beforeEach(() => {
  file = new ApprovalFile(join(folderWith(), 'data', 'approvals', 'a.json'));
});

const ONE = withApproved(new Map(), [['x', 'definition']]);

describe('a file of approvals', () => {
  it('says nothing as long as it is not there, and then what was approved', () => {
    expect(file.read()).toBeUndefined();
    expect(file.create(ONE)).toBe(true);
    expect(file.read()).toEqual(new Map([['x', [{ digest: digestOf('definition'), text: 'definition' }]]]));
  });

  it.skipIf(process.platform === 'win32')('is for its owner alone, and no draft is left beside it', () => {
    file.create(ONE);
    file.replace(ONE);
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(file.path)).mode & 0o777).toBe(0o700);
    expect(readdirSync(dirname(file.path))).toEqual(['a.json']);
  });

  it('is not made anew when it is there', () => {
    file.create(ONE);
    expect(file.create(new Map())).toBe(false);
    expect(file.read()).toEqual(ONE);
    file.replace(new Map());
    expect(file.read()).toEqual(new Map());
  });

  it.each([
    ['broken', (path: string) => writeFileSync(path, readFileSync(path, 'utf8').slice(0, -9))],
    ['empty', (path: string) => writeFileSync(path, '')],
    ['of another format', (path: string) => writeFileSync(path, '{"format":2,"tools":[]}')],
    ['of another shape', (path: string) => writeFileSync(path, '{"format":1,"tools":[["x",[{"digest":1}]]]}')],
    ['writable for others', (path: string) => chmodSync(path, 0o622)],
  ])('is refused when it is %s, with its path', (_what, spoil) => {
    file.create(ONE);
    spoil(file.path);
    expect(() => file.read()).toThrow(ApprovalFileError);
    expect(() => file.read()).toThrow(file.path);
  });

  it('is refused when it is a link to somewhere else', () => {
    file.create(ONE);
    const link = new ApprovalFile(join(dirname(file.path), 'link.json'));
    symlinkSync(file.path, link.path);
    expect(() => link.read()).toThrow(ApprovalFileError);
  });

  it('leaves nothing behind when it cannot be written', () => {
    file.create(ONE);
    const below = new ApprovalFile(join(file.path, 'below.json'));
    expect(() => below.replace(ONE)).toThrow();
    expect(existsSync(below.path)).toBe(false);
    expect(readdirSync(dirname(file.path))).toEqual(['a.json']);
  });
});

describe('what is approved', () => {
  it('has several definitions of a tool, the last one approved coming last', () => {
    const after = withApproved(withApproved(ONE, [['x', 'other']]), [['x', 'definition']]);
    expect(after.get('x')?.map(({ text }) => text)).toEqual(['other', 'definition']);
  });

  it('is bounded: definitions, tools, and how much of their text is stored', () => {
    const many = Array.from({ length: 20 }, (_, index) => ['x', `definition ${index}`] as const);
    expect(withApproved(new Map(), many).get('x')).toHaveLength(8);
    const tools = Array.from({ length: 2_010 }, (_, index) => [`tool ${index}`, 'x'] as const);
    const bounded = withApproved(new Map(), tools);
    expect([bounded.size, bounded.has('tool 9'), bounded.has('tool 10')]).toEqual([2_000, false, true]);
    const [long, tooLong] = ['x'.repeat(65_536), 'x'.repeat(65_537)];
    expect(withApproved(new Map(), [['x', tooLong]]).get('x')).toEqual([{ digest: digestOf(tooLong) }]);
    const large = withApproved(
      new Map(),
      Array.from({ length: 70 }, (_, index) => [`${index}`, long]),
    );
    expect([...large.values()].flat().filter(({ text }) => text !== undefined)).toHaveLength(64);
    expect(large.get('69')?.[0]?.text).toBe(long);
  });
});
