import { describe, expect, test } from 'vitest';
import { compareConfigs } from '../../../src/config/resolve/compare.js';
import { load } from '../loading.js';

const BEFORE = `
servers:
  a: { command: x, args: [one], env: { K: v } }
  b: { command: y }
  c: { command: z }
`;

/** The changes from the first text to the second. */
function changes(before: string, after: string) {
  // In one place, as an edited file is.
  const file = { before: load(before), after: load(after) };
  const cwd = file.before.servers[0]?.child?.cwd ?? '';
  const servers = file.after.servers.map((server) =>
    server.child === undefined ? server : { ...server, child: { ...server.child, cwd } },
  );
  return compareConfigs(file.before, { ...file.after, servers });
}

const NOTHING = { added: [], removed: [], replaced: [], adjusted: [], isReordered: false, gateway: [] };

describe('the difference between two configurations', () => {
  test('is none when only comments, spaces and the spelling of values differ', () => {
    const after = `# a comment\nservers:\n  a:\n    command: "x"\n    args: ['one']\n    env: { K: v }\n    timeout: 60000ms\n  b: { command: y, concurrency: 64 }\n  c: { command: z, disabled: false }\ngateway: { idleStop: 600s }\n`;
    expect(changes(BEFORE, after)).toStrictEqual({ ...NOTHING, unchanged: ['a', 'b', 'c'] });
  });

  test('is another process for each server that gets a changed variable of `defaults.env`', () => {
    const after = BEFORE.replace('{ command: y }', '{ command: y, env: { V: old } }');
    const all = (value: string) => `defaults: { env: { V: ${value} } }${after}`;
    expect(changes(all('old'), all('new'))).toMatchObject({ replaced: ['a', 'c'], unchanged: ['b'] });
  });

  test('names what was added, removed and changed, each in the order of its file', () => {
    const after = `
servers:
  e: { command: x }
  c: { command: other }
  a: { command: x, args: [one], env: { K: v }, timeout: 5s }
  d: { command: x }
`;
    expect(changes(BEFORE, after)).toStrictEqual({
      added: ['e', 'd'],
      removed: ['b'],
      replaced: ['c'],
      adjusted: ['a'],
      unchanged: [],
      isReordered: true,
      gateway: [],
    });
  });

  test.each([
    ['command', 'a: { command: other, args: [one], env: { K: v } }'],
    ['args', 'a: { command: x, args: [two], env: { K: v } }'],
    ['env', 'a: { command: x, args: [one], env: { K: w } }'],
    ['sharing', 'a: { command: x, args: [one], env: { K: v }, sharing: all }'],
    ['leaveRunning', 'a: { command: x, args: [one], env: { K: v }, leaveRunning: true }'],
    ['maxFrame', 'a: { command: x, args: [one], env: { K: v }, maxFrame: 1MiB }'],
    ['what is missing', `a: { command: x, args: [one], env: { K: "\${UNSET}" } }`],
  ])('asks for another process when %s changes', (_what, entry) => {
    const after = `servers:\n  ${entry}\n  b: { command: y }\n  c: { command: z }\n`;
    expect(changes(BEFORE, after)).toStrictEqual({ ...NOTHING, replaced: ['a'], unchanged: ['b', 'c'] });
  });

  test.each([
    ['tools', 'tools: { deny: [x] }'],
    ['prefix', 'prefix: ""'],
    ['methods', 'methods: ["x/*"]'],
    ['timeout', 'timeout: 1s'],
    ['trusted', 'trusted: true'],
    ['approval', 'approval: required'],
    ['concurrency', 'concurrency: 1'],
    ['stopGrace', 'stopGrace: 1s'],
    ['restart', 'restart: { budget: 1 }'],
    ['limits', 'limits: { memory: 1GiB }'],
    ['the naming of a variable', `env: { K: "\${UNSET:-v}" }`],
  ])('leaves the process alone when only %s changes', (_what, member) => {
    const entry = BEFORE.replace(member.startsWith('env') ? ', env: { K: v }' : /$^/, '');
    const after = entry.replace('args: [one]', `args: [one], ${member}`);
    expect(changes(BEFORE, after)).toStrictEqual({ ...NOTHING, adjusted: ['a'], unchanged: ['b', 'c'] });
  });

  test('counts the largest change of each server, for clients with other variables too', () => {
    const [before, after] = [load(BEFORE), load(BEFORE)];
    const servers = after.servers.map((server) => ({
      ...server,
      child: before.servers.find(({ key }) => key === server.key)?.child,
    }));
    const others = (
      ['a replaced', 'a unchanged', 'c adjusted', 'c replaced', 'b adjusted', 'gone removed'] as const
    ).map((text) => {
      const [key = '', change] = text.split(' ');
      return { key, change: change as 'replaced' };
    });
    expect(compareConfigs(before, { ...after, servers }, others)).toStrictEqual({
      ...NOTHING,
      replaced: ['a', 'c'],
      adjusted: ['b'],
      unchanged: [],
    });
  });

  test('is none when a server that cannot run merely moved to another line', () => {
    const text = `servers:\n  a: { command: "\${UNSET}" }\n`;
    expect(changes(text, `\n\n${text}`)).toStrictEqual({ ...NOTHING, unchanged: ['a'] });
  });

  test('follows `defaults`, and counts a server that is disabled as removed', () => {
    const after = BEFORE.replace('command: y', 'command: y, disabled: true');
    const { adjusted, removed } = changes(BEFORE, `${after}defaults: { timeout: 1s }\n`);
    expect({ adjusted, removed }).toEqual({ adjusted: ['a', 'c'], removed: ['b'] });
  });

  test('names the settings of Trunkline itself', () => {
    const after = `${BEFORE}gateway: { restartTool: true, http: { maxSessions: 5 } }\n`;
    expect(changes(BEFORE, after).gateway).toEqual(['restartTool', 'http']);
  });
});
