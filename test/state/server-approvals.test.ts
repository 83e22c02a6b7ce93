import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  ApprovalFile,
  ApprovalFileError,
  digestOf,
  ServerApprovals,
  type WithheldTool,
  withApproved,
} from '../../src/state/approvals.js';
import { folderWith } from '../config/files.js';
import { HAS_MODES } from '../support/platform.js';

function judging(path = join(folderWith(), 'a.json'), trustsFirstUse = true) {
  const told: string[] = [];
  const withheld: (readonly WithheldTool[])[] = [];
  const approvals = new ServerApprovals({
    file: new ApprovalFile(path),
    command: 'trunkline approve a',
    trustsFirstUse,
    onFirstUse: (tools) => told.push(`first use of ${tools}`),
    onFault: (fault) => told.push(fault),
    onWithheld: (tools) => withheld.push(tools),
  });
  const judge = (tools: Record<string, string>) => Object.fromEntries(approvals.judge(new Map(Object.entries(tools))));
  return { path, approvals, judge, told, withheld };
}

describe('the tools of a server', () => {
  it('are approved as they are the first time, and what is new or has changed then is not', () => {
    const { judge, told, path } = judging();
    expect(judge({ x: '1', y: '1' })).toEqual({ x: 'approved', y: 'approved' });
    expect(judge({ x: '2', y: '1', z: '1' })).toEqual({ x: 'changed', y: 'approved', z: 'new' });
    expect(told).toEqual(['first use of 2']);
    const next = judging(path);
    expect(next.judge({ x: '2', z: '1' })).toEqual({ x: 'changed', z: 'new' });
    expect(next.told).toEqual([]);
  });

  it('are still approved when they went and come back as they were', () => {
    const { judge } = judging();
    judge({ x: '1', y: '1' });
    judge({ x: '1' });
    expect(judge({ x: '1', y: '1' })).toEqual({ x: 'approved', y: 'approved' });
    judge({ x: '2' });
    expect(judge({ x: '1' })).toEqual({ x: 'approved' });
  });

  it('are not settled by an empty list', () => {
    const { judge, told } = judging();
    judge({});
    expect(told).toEqual([]);
    expect(judge({ x: '1' })).toEqual({ x: 'approved' });
  });

  it('keep each definition that was approved, as a server may tell one client this and another one that', () => {
    const { judge, approvals } = judging();
    judge({ x: '1' });
    approvals.approve([{ name: 'x', definition: '2' }]);
    expect([judge({ x: '1' }), judge({ x: '2' }), judge({ x: '3' })]).toEqual([
      { x: 'approved' },
      { x: 'approved' },
      { x: 'changed' },
    ]);
  });

  it('are told when they are withheld, once', () => {
    const { judge, withheld, approvals } = judging();
    judge({ x: '1' });
    judge({ x: '2' });
    judge({ x: '2' });
    judge({ x: '1', y: '1' });
    expect(withheld).toEqual([
      [{ name: 'x', definition: '2' }],
      [
        { name: 'x', definition: '2' },
        { name: 'y', definition: '1' },
      ],
    ]);
    approvals.approve([{ name: 'x', definition: '2' }]);
    expect(approvals.withheld).toEqual([{ name: 'y', definition: '1' }]);
  });

  it('are all withheld while the file cannot be read, and that is told; a mended file is taken over', () => {
    const { judge, path } = judging();
    judge({ x: '1' });
    const sound = readFileSync(path, 'utf8');
    writeFileSync(path, 'broken');
    const next = judging(path);
    expect(next.judge({ x: '1' })).toEqual({ x: 'unreadable' });
    expect(next.told).toEqual([expect.stringContaining(path)]);
    expect(next.approvals.facts.advice).toContain(path);
    expect(readFileSync(path, 'utf8')).toBe('broken');
    expect(next.approvals.reread()).toBe(false);
    writeFileSync(path, sound);
    expect(next.approvals.reread()).toBe(true);
    expect(next.judge({ x: '1' })).toEqual({ x: 'approved' });
    expect(next.approvals.facts.fault).toBeUndefined();
  });

  it.each(['', '\0\0\0', '{"format":1,"tools":[['])(
    'F80: are none in a torn file, which nothing writes over: %j',
    (torn) => {
      const { path, judge: first } = judging();
      first({ x: '1' });
      writeFileSync(path, torn);
      const { judge, approvals, told } = judging(path);
      expect(judge({ x: '1', y: '1' })).toEqual({ x: 'unreadable', y: 'unreadable' });
      expect(() => approvals.approve([{ name: 'x', definition: '1' }])).toThrow(path);
      expect(told).toEqual([expect.stringContaining(path)]);
      expect(readFileSync(path, 'utf8')).toBe(torn);
    },
  );

  it('stay approved in this run when the file is removed meanwhile', () => {
    const { judge, approvals, path } = judging();
    judge({ x: '1' });
    rmSync(path);
    expect(approvals.reread()).toBe(false);
    expect(judge({ x: '2' })).toEqual({ x: 'changed' });
  });

  it('are what another process approved that was quicker', () => {
    const one = judging();
    const other = judging(one.path);
    one.judge({ x: '1' });
    expect(other.judge({ x: '2', y: '1' })).toEqual({ x: 'changed', y: 'new' });
    expect(other.told).toEqual([]);
  });

  it('are approved for this run alone where nothing can be written, which is told', () => {
    // Its folder is not there yet, and its name is longer than any system takes, for which Windows has the code of a missing file.
    const { judge, told, approvals } = judging(join(folderWith(), 'missing', 'x'.repeat(300)));
    expect(judge({ x: '1' })).toEqual({ x: 'approved' });
    expect(judge({ x: '2' })).toEqual({ x: 'changed' });
    expect(told).toEqual([expect.stringMatching(/ENAMETOOLONG|ENOENT/), 'first use of 1']);
    expect(approvals.facts.fault).toContain('the next run starts without them');
  });

  it('all wait for a person who reviews them, the first ones too; one refusal says that somebody has looked', () => {
    const { judge, approvals, path } = judging(undefined, false);
    expect(judge({ x: '1' })).toEqual({ x: 'new' });
    approvals.approve([]);
    expect(judging(path).judge({ x: '1' })).toEqual({ x: 'new' });
  });
});

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

  it('is not made anew when it is there', () => {
    file.create(ONE);
    expect(file.create(new Map())).toBe(false);
    expect(file.read()).toEqual(ONE);
    file.replace(new Map());
    expect(file.read()).toEqual(new Map());
  });

  it.each([
    ['of another format', (path: string) => writeFileSync(path, '{"format":2,"tools":[]}')],
    ['of another shape', (path: string) => writeFileSync(path, '{"format":1,"tools":[["x",[{"digest":1}]]]}')],
    ...(HAS_MODES ? [['writable for others', (path: string) => chmodSync(path, 0o622)] as const] : []),
  ] as const)('is refused when it is %s, with its path', (_what, spoil) => {
    file.create(ONE);
    spoil(file.path);
    expect(() => file.read()).toThrow(ApprovalFileError);
    expect(() => file.read()).toThrow(file.path);
  });
});

describe('the record of approved tools', () => {
  it('has several definitions of a tool, the last one approved coming last', () => {
    const after = withApproved(withApproved(ONE, [['x', 'other']]), [['x', 'definition']]);
    expect(after.get('x')?.map(({ text }) => text)).toEqual(['other', 'definition']);
  });

  it('is bounded: definitions, tools, and how much of their text is stored', () => {
    const many = Array.from({ length: 20 }, (_, index) => ['x', `definition ${index}`] as const);
    expect(withApproved(new Map(), many).get('x')).toHaveLength(8);
    const tools = Array.from({ length: 5_010 }, (_, index) => [`tool ${index}`, 'x'] as const);
    const bounded = withApproved(new Map(), tools);
    expect([bounded.size, bounded.has('tool 9'), bounded.has('tool 10')]).toEqual([5_000, false, true]);
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
