import { describe, expect, it } from 'vitest';
import type { ControlGroup } from '../../src/process/control-group.js';
import type { ResourceLimits } from '../../src/supervision/resource-limits.js';
import type { DialTarget } from '../../src/upstream/port.js';
import { LaunchedFamily } from '../../src/upstream/stdio/launched-family.js';
import { realClock, until } from '../support/processes.js';
import { spawnFixture } from './spawned.js';

const NOW = { termAfterMs: 0, killAfterMs: 0 };
const KILLED = { code: null, signal: 'SIGKILL' };

/** A family whose control group notes what is asked of it. */
function familyOf({ leaveRunning = false, hasGroup = true, reason = undefined as string | undefined } = {}) {
  const done: string[] = [];
  const guarded = new Set<string>();
  const group = {
    folder: '/cgroup/1-server',
    adopt: async (pid: number) => void done.push(`adopt ${pid}`),
    members: async () => [],
    isEmpty: async () => true,
    kill: async () => void done.push('kill'),
    outOfMemory: () => reason,
    remove: async () => void done.push('remove'),
  };
  const limits: ResourceLimits = { processes: 3 };
  const family = new LaunchedFamily(
    {
      clock: realClock,
      logger: { info: () => {}, error: () => {} },
      orphanGuard: {
        announce: () => {
          guarded.add('mark');
          return '0'.repeat(32);
        },
        add: (pgid) => void guarded.add(String(pgid)),
        remove: (pgid) => void guarded.delete(String(pgid)),
        release: () => void guarded.delete('mark'),
      },
      events: { emit: () => {} },
      controlGroups: {
        open: async (key, limitsOf) => {
          done.push(`open ${key} ${JSON.stringify(limitsOf())}`);
          return hasGroup ? (group as unknown as ControlGroup) : undefined;
        },
      },
    },
    { spec: { key: 'a', leaveRunning }, generation: 1, limits: () => limits } as DialTarget,
  );
  return { family, done, guarded };
}

describe.runIf(process.platform !== 'win32')('the family of a launch', () => {
  it('is taken into a control group once the server runs, and the group is removed at the end', async () => {
    const { family, done, guarded } = familyOf();
    const { child } = spawnFixture('end-on-eof.mjs');
    family.started(child);
    await until('the group has it', () => done.length === 2);
    await family.end(child, NOW);
    expect(done).toEqual(['open a {"processes":3}', `adopt ${child.pid}`, 'remove']);
    expect(guarded).toEqual(new Set());
  });

  it('leaves no group behind if nothing could be started', async () => {
    const { family, done, guarded } = familyOf();
    const { child } = spawnFixture('end-on-eof.mjs');
    const nothing = { ...child, pid: undefined, exit: Promise.resolve({ code: null, signal: null }) };
    family.started(nothing);
    await family.end(nothing, NOW);
    expect(done).toEqual([]);
    expect(guarded).toEqual(new Set());
    child.stdin.end();
  });

  it('gets no control group if its processes may outlive the server', async () => {
    const { family, done } = familyOf({ leaveRunning: true });
    const { child } = spawnFixture('end-on-eof.mjs');
    family.started(child);
    await family.end(child, NOW);
    expect(done).toEqual([]);
  });

  it('ends as before where there are no control groups', async () => {
    const { family, guarded } = familyOf({ hasGroup: false });
    const { child } = spawnFixture('end-on-eof.mjs');
    family.started(child);
    await family.end(child, NOW);
    expect(guarded).toEqual(new Set());
  });

  it('was ended for its memory only if the kernel killed it, not if it ended by itself', async () => {
    const { family, done } = familyOf({ reason: 'it needed too much' });
    const { child } = spawnFixture('end-on-eof.mjs');
    family.started(child);
    await until('the group has it', () => done.length === 2);
    expect(family.outOfMemory(KILLED)).toBe('it needed too much');
    expect(family.outOfMemory({ code: 1, signal: null })).toBeUndefined();
    await family.end(child, NOW);
  });
});
