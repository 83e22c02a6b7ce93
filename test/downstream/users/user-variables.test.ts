import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderName, folderOf, storedVariables, UserVariables } from '../../../src/downstream/users/user-variables.js';
import { folderWith } from '../../config/files.js';
import { HAS_MODES } from '../../support/platform.js';

let folder: string;
const faults: [file: string, reason: string][] = [];

beforeEach(() => {
  folder = folderWith();
  faults.length = 0;
});

function store(path: string, value: string, mode = 0o600): void {
  mkdirSync(join(folder, path, '..'), { recursive: true });
  writeFileSync(join(folder, path), value);
  chmodSync(join(folder, path), mode);
}

/** Variables that are read at the time `now`. */
function open(names: readonly string[], now = () => 0) {
  const references = [...names.map((name) => `user:${name}`), 'HOME'];
  const environment = { HOME: '/home/ada', 'user:TOKEN': 'of the process' };
  const options = { folder, names: () => references, environment, workingFolder: '/work', now };
  return new UserVariables({ ...options, onFault: (...fault) => faults.push(fault) });
}

const userOf = (name: string, kind: 'user' | 'machine' = 'user') => ({
  principal: `${kind} ${name}`,
  name,
  kind,
  groups: [],
});

/** The variables that are the user's. */
function read(name: string, names: readonly string[], kind?: 'user' | 'machine') {
  const { HOME: _, ...own } = open(names).originOf(userOf(name, kind)).environment;
  return Object.fromEntries(Object.entries(own).map(([key, value]) => [key.replace('user:', ''), value]));
}

describe('the variables of a user', () => {
  it('are files in the folder of the user, and of no other', () => {
    store('users/ann/TOKEN', 'of ann\n');
    store('users/bob/TOKEN', 'of bob');
    store('users/bob/OTHER', 'more');
    expect(read('ann', ['TOKEN', 'OTHER'])).toEqual({ TOKEN: 'of ann' });
    expect(read('bob', ['TOKEN', 'OTHER'])).toEqual({ TOKEN: 'of bob', OTHER: 'more' });
    expect(read('eve', ['TOKEN'])).toEqual({});
    expect(faults).toEqual([]);
  });

  it('are not those of a machine with the same name', () => {
    store('users/ci/TOKEN', 'of the user');
    store('machines/ci/TOKEN', 'of the machine');
    expect([read('ci', ['TOKEN']), read('ci', ['TOKEN'], 'machine')]).toEqual([
      { TOKEN: 'of the user' },
      { TOKEN: 'of the machine' },
    ]);
  });

  it('lose one line break at their end', () => {
    store('users/ann/ONE', 'a\n\n');
    store('users/ann/TWO', 'a\r\n');
    expect(read('ann', ['ONE', 'TWO'])).toEqual({ ONE: 'a\n', TWO: 'a' });
  });

  it('are read through symbolic links, as Kubernetes makes them', () => {
    store('users/ann/..data/TOKEN', 'linked', 0o444);
    symlinkSync('..data/TOKEN', join(folder, 'users/ann/TOKEN'));
    expect(read('ann', ['TOKEN'])).toEqual({ TOKEN: 'linked' });
  });

  it('are left out with a warning if other users can change them, or if they are too large', () => {
    store('users/ann/OPEN', 'x', 0o666);
    store('users/ann/LARGE', 'x'.repeat(64 * 1024 + 1));
    mkdirSync(join(folder, 'users/ann/FOLDER'));
    expect(read('ann', ['OPEN', 'LARGE', 'FOLDER'])).toEqual(HAS_MODES ? {} : { OPEN: 'x' });
    expect(faults.map(([, reason]) => reason)).toEqual([
      ...(HAS_MODES ? ['other users can change it'] : []),
      'it is too large',
      'it is a folder, not a file',
    ]);
  });
});

describe('the folder of all variables', () => {
  it('tells whose variables are there, under the names that the users have', () => {
    for (const name of ['ann@example.com', 'auth0|Ann', '.', 'ä'])
      store([...(folderOf({ name, kind: 'user' }) ?? []), 'TOKEN'].join('/'), 'x');
    store('machines/ci/KEY', 'x');
    store('machines/ci/..data', 'x');
    store('machines/..2026/KEY', 'x');
    const found = storedVariables(folder).map(({ name, kind, variables }) => [kind, name, ...variables]);
    expect(found.sort()).toEqual([
      ['machine', 'ci', 'KEY'],
      ...['.', 'ann@example.com', 'auth0|Ann', 'ä'].map((name) => ['user', name, 'TOKEN']),
    ]);
    expect(storedVariables(join(folder, 'none'))).toEqual([]);
  });
});

describe('the origin of a user', () => {
  it('has the variables of the process besides, and the user', () => {
    store('users/ann/TOKEN', 'of ann');
    expect(open(['TOKEN']).originOf(userOf('ann'))).toEqual({
      ...{
        environment: { HOME: '/home/ada', 'user:TOKEN': 'of ann' },
        folder: '/work',
        user: 'user ann',
        isMachine: false,
        userName: 'ann',
      },
    });
  });

  it('stays the same object until a value changes, which counts after a second', () => {
    let now = 0;
    const variables = open(['TOKEN'], () => now);
    const first = variables.originOf(userOf('ann'));
    store('users/ann/TOKEN', 'new');
    now = 999;
    expect(variables.originOf(userOf('ann'))).toBe(first);
    now = 1_000;
    const second = variables.originOf(userOf('ann'));
    expect(second.environment).toMatchObject({ 'user:TOKEN': 'new' });
    now = 5_000;
    expect(variables.originOf(userOf('ann'))).toBe(second);
  });

  it('reports a file that cannot be used once', () => {
    let now = 0;
    const variables = open(['OPEN'], () => now);
    mkdirSync(join(folder, 'users/ann/OPEN'), { recursive: true });
    for (; now < 5_000; now += 1_000) variables.originOf(userOf('ann'));
    expect(faults).toHaveLength(1);
  });
});

describe('the folder of a user', () => {
  it.each([
    ['ann', 'ann'],
    ['ann@example.com', 'ann@example.com'],
    ['0f8fad5b-d9cb-469f-a165-70867728950e', '0f8fad5b-d9cb-469f-a165-70867728950e'],
    ['auth0|Ann', 'auth0%7C%41nn'],
    ['..', '%2E%2E'],
    ['.', '%2E'],
    ['../bob', '%2E.%2Fbob'],
    ['bob/../ann', 'bob%2F..%2Fann'],
    ['ann.', 'ann%2E'],
    ['%61nn', '%2561nn'],
    ['änn', '%C3%A4nn'],
    ['a b\n', 'a%20b%0A'],
    ['C:\\ann', '%43%3A%5Cann'],
  ])('of %j is %s', (name, expected) => {
    expect(folderName(name)).toBe(expected);
  });

  it('does not exist for a name that is too long for one', () => {
    expect(read('A'.repeat(100), ['TOKEN'])).toEqual({});
  });
});
