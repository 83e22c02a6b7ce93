import { chmodSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { MachineTokens, withoutTokens, withToken } from '../../../src/downstream/users/machine-tokens.js';
import { folderWith } from '../../config/files.js';
import { HAS_MODES } from '../../support/platform.js';
import { sha256 } from '../../support/sha256.js';

let folder: string;
let file: string;
const faults: string[] = [];

beforeEach(() => {
  folder = folderWith();
  file = join(folder, 'tokens');
  faults.length = 0;
});

const ONE = sha256('token one');
const TWO = sha256('token two');

function open(text: string): MachineTokens {
  writeFileSync(file, text);
  return new MachineTokens({ file, onFault: (fault) => faults.push(fault) });
}

describe('the tokens of machines', () => {
  it('have names and groups', () => {
    const machines = open(`# machines\n\nci ${ONE} builders,readers\r\n  nightly.job\t${TWO.toUpperCase()}  \n`);
    const ci = machines.find(ONE, 0);
    expect(ci).toMatchObject({ name: 'ci', kind: 'machine', groups: ['builders', 'readers'] });
    expect(machines.find(TWO, 0)).toMatchObject({ name: 'nightly.job', groups: [] });
    expect(machines.find(sha256('token three'), 0)).toBeUndefined();
  });

  it('belong to one principal if two of them have one name, so that a token can be replaced', () => {
    const machines = open(`ci ${ONE}\nci ${TWO}\n`);
    expect(machines.find(ONE, 0)?.principal).toBe(machines.find(TWO, 0)?.principal);
  });

  it.each([
    ['ci', 'line 2 of FILE is not `NAME SHA256 GROUPS`, such as `ci 9f86…0a08 builders,readers`'],
    [`ci ${ONE.slice(1)}`, 'line 2 of FILE is not `NAME SHA256 GROUPS`, such as `ci 9f86…0a08 builders,readers`'],
    [`../ci ${ONE}`, 'line 2 of FILE is not `NAME SHA256 GROUPS`, such as `ci 9f86…0a08 builders,readers`'],
    [`ci ${ONE} a, b`, 'line 2 of FILE is not `NAME SHA256 GROUPS`, such as `ci 9f86…0a08 builders,readers`'],
    [`CI ${ONE}`, 'line 2 of FILE has a name with capital letters, CI'],
    [`ci ${TWO}`, 'line 2 of FILE has the token of another line, of first'],
  ])('are not read from a file with the line %s', (line, message) => {
    expect(() => open(`first ${TWO}\n${line}\n`)).toThrow(message.replace('FILE', file));
  });

  it.each([
    ['all', 'ci', false, `# ci\n\nnightly ${TWO}\n`, 2],
    ['the earlier', 'ci', true, `# ci\n\nnightly ${TWO}\n ci ${ONE} a\n`, 1],
    ['no earlier', 'nightly', true, undefined, 0],
    ['no', 'i', false, undefined, 0],
  ])('lose %s of %s, and every other line stays as it is', (_, name, isLastKept, after, count) => {
    const before = `# ci\nci\t${sha256('three')}\n\nnightly ${TWO}\n ci ${ONE} a\n`;
    expect(withoutTokens(before, file, name, isLastKept)).toEqual({ text: after ?? before, count });
  });

  it.each([
    ['', ['a', 'b'], `new ${ONE} a,b\n`],
    [`ci ${TWO}`, [], `ci ${TWO}\nnew ${ONE}\n`],
    [`# who\n\nnew ${TWO} a\n`, ['b'], `# who\n\nnew ${TWO} a\nnew ${ONE} b\n`],
  ])('get a line at the end of the file %j, which stays as it is', (text, groups, after) => {
    expect(withToken(text, file, { name: 'new', hash: ONE, groups })).toBe(after);
    expect(open(after).find(ONE, 0)).toMatchObject({ name: 'new', groups });
  });

  it.each([
    ['', 'a b', [], '`a b` cannot be written'],
    ['', '../x', [], '`../x` cannot be written'],
    ['', `x ${TWO}\ny`, [], 'cannot be written'],
    ['', 'CI', [], '`CI` cannot be written'],
    ['', 'ci', ['a,b c'], '`ci a,b c` cannot be written'],
    ['wrong\n', 'ci', [], 'line 1 of'],
  ])('get no line in the file %j with the name %j and the groups %j', (text, name, groups, message) => {
    expect(() => withToken(text, file, { name, hash: ONE, groups })).toThrow(message);
  });

  it.runIf(HAS_MODES)('are not read from a file that other users can change', () => {
    writeFileSync(file, `ci ${ONE}\n`);
    chmodSync(file, 0o666);
    expect(() => new MachineTokens({ file, onFault: () => {} })).toThrow('other users can change it');
  });

  it('are read through a symbolic link, as Kubernetes makes one', () => {
    writeFileSync(join(folder, 'behind'), `ci ${ONE}\n`, { mode: 0o444 });
    symlinkSync('behind', file);
    expect(new MachineTokens({ file, onFault: () => {} }).find(ONE, 0)?.name).toBe('ci');
  });

  it('follow a changed file within a second, and lose their effect with it', () => {
    const machines = open(`ci ${ONE}\n`);
    expect(machines.find(ONE, 0)?.name).toBe('ci');
    writeFileSync(file, `robot ${TWO}\n`);
    expect(machines.find(TWO, 999)).toBeUndefined();
    expect([machines.find(ONE, 1_000), machines.find(TWO, 1_000)?.name]).toEqual([undefined, 'robot']);
    rmSync(file);
    expect(machines.find(TWO, 2_000)?.name).toBe('robot');
    expect(faults).toEqual([
      `the file ${file} of \`auth.tokens\` does not exist; \`trunkline token add NAME\` makes it`,
    ]);
  });

  it('stay when a changed file has a mistake, which is reported once', () => {
    const machines = open(`ci ${ONE}\n`);
    machines.find(ONE, 0);
    const draft = join(folder, 'draft');
    writeFileSync(draft, 'ci\n');
    renameSync(draft, file);
    expect([1_000, 2_000, 3_000].map((now) => machines.find(ONE, now)?.name)).toEqual(['ci', 'ci', 'ci']);
    expect(faults).toHaveLength(1);
  });
});
