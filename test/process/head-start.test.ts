import { afterEach, describe, expect, it } from 'vitest';
import { readInto } from '../../src/io/streams/read-into.js';
import type { SpawnListeners } from '../../src/process/spawn-child.js';
import type { ChildSpec } from '../../src/supervision/launcher.js';
import { HeadStart } from '../../src/upstream/stdio/head-start.js';
import { fixture, liveMembers, realClock, until } from '../support/processes.js';

const AT_ONCE = { termAfterMs: 0, killAfterMs: 0 };

/** What the guard is told. */
let told: string[] = [];
const guard = {
  announce: () => {
    told.push('announce');
    return '0123456789abcdef'.repeat(2);
  },
  add: (pgid: number, mark?: string) =>
    void told.push(mark === undefined ? `add ${pgid}` : `add ${pgid} and its family`),
  remove: (pgid: number) => void told.push(`remove ${pgid}`),
  release: () => void told.push('release'),
};

let headStart = new HeadStart({ guard, clock: realClock, environment: process.env });
afterEach(async () => {
  await headStart.close(AT_ONCE);
  headStart = new HeadStart({ guard, clock: realClock, environment: process.env });
  told = [];
});

function specOf(command: string, args: readonly string[], more: Partial<ChildSpec> = {}): ChildSpec {
  return {
    key: 'a',
    command,
    args,
    cwd: process.cwd(),
    env: {},
    timeouts: { startMs: 1_000, stopGraceMs: 0, killAfterMs: 0 },
    restart: {
      firstDelayMs: 1,
      maxDelayMs: 1,
      budget: 1,
      stableAfterMs: 1,
      parkedProbeMs: 1,
      parkedProbeMaxMs: 1,
      demandEveryMs: 1,
    },
    leaveRunning: false,
    ...more,
  };
}

const program = (name: string, ...args: string[]) => specOf(process.execPath, [fixture(name), ...args]);

/** Takes the process of a spec, and collects what it does. */
function taken(spec: ChildSpec) {
  const seen = { happened: [] as string[], output: '' };
  const started = headStart.take(spec);
  if (started === undefined) throw new Error('nothing was started');
  const listeners: SpawnListeners = {
    onExit: ({ code }) => void seen.happened.push(`exit ${code}`),
    onSpawnError: ({ code }) => void seen.happened.push(`error ${code}`),
  };
  const child = started.connect(listeners);
  expect(seen.happened).toEqual([]);
  const memory = Buffer.alloc(1_024);
  readInto(child.stdout, {
    freeSpace: memory,
    filled: (length: number) => {
      seen.output += memory.toString('utf8', 0, length);
    },
  });
  return { child, seen };
}

describe('a process that was started ahead', () => {
  it('is taken once, with all that it has written, and ends as any other', async () => {
    const spec = program('end-on-eof.mjs');
    headStart.spawn(spec);
    const { child, seen } = taken({ ...spec });
    expect(headStart.take(spec)).toBeUndefined();
    await until('its first line', () => seen.output === 'up\n');
    child.stdin.end();
    expect(await child.exit).toEqual({ code: 0, signal: null });
    await until('its last line', () => seen.output === 'up\nbye\n');
    expect(seen.happened).toEqual(['exit 0']);
  });

  it('F93: keeps its output and its exit for the one who takes it, although it has ended before', async () => {
    const spec = specOf('/bin/sh', ['-c', 'echo "out of order"; exit 3']);
    headStart.spawn(spec);
    const pid = Number(/add (\d+)/.exec(told.join())?.[1]);
    await until('it has ended', () => liveMembers([pid]).length === 0);
    // Node reports the exit, and reads the pipes away, in the turns after that.
    await new Promise((resolve) => setTimeout(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    const { child, seen } = taken(spec);
    expect(await child.exit).toEqual({ code: 3, signal: null });
    await until('its output', () => seen.output === 'out of order\n');
    await until('its exit', () => seen.happened.length > 0);
    expect(seen.happened).toEqual(['exit 3']);
  });

  it('reports that nothing could be spawned to the one who takes it', async () => {
    const spec = specOf('/nowhere/to-be-found', []);
    headStart.spawn(spec);
    const { seen } = taken(spec);
    await until('the report', () => seen.happened.length > 0);
    expect(seen.happened).toEqual(['error ENOENT']);
    expect(told).toEqual(['announce', 'release']);
  });

  it('is not taken for a server with another command, other arguments, variables or another folder', () => {
    const spec = program('end-on-eof.mjs');
    headStart.spawn(spec);
    const others = [{ command: 'x' }, { args: [...spec.args, 'x'] }, { env: { A: 'b' } }, { cwd: '/' }, { key: 'b' }];
    for (const other of others) expect(headStart.take({ ...spec, ...other })).toBeUndefined();
    expect(headStart.take(spec)).toBeDefined();
  });

  it('is ended, and forgotten by the guard, if nobody has taken it', async () => {
    headStart.spawn(program('ignore-sigterm.mjs'));
    const pid = Number(/add (\d+) and its family/.exec(told.join())?.[1]);
    expect(liveMembers([pid])).toHaveLength(1);
    await headStart.close(AT_ONCE);
    expect(liveMembers([pid])).toEqual([]);
    expect(told.slice(2)).toEqual([`remove ${pid}`, 'release']);
  });

  it('leaves its family to itself with `leaveRunning`', () => {
    headStart.spawn({ ...program('end-on-eof.mjs'), leaveRunning: true });
    expect(told).toEqual(['announce', expect.stringMatching(/^add \d+$/), 'release']);
  });
});
