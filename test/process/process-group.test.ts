import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isGroupAlive, signalGroup } from '../../src/process/end-group.js';
import { fixture, until } from '../support/processes.js';
import { spawnFixture } from './spawned.js';

describe('a process group', () => {
  it('is alive until its last member has gone, and gets signals as one', async () => {
    const { child, says, live } = spawnFixture('grandchild.mjs', fixture('ignore-eof.mjs'));
    const pgid = child.pid ?? 0;
    await child.exit;
    await says('up');
    expect(isGroupAlive(pgid)).toBe(true);
    signalGroup(pgid, 'SIGTERM');
    await until('the group is gone', () => !isGroupAlive(pgid));
    expect(live()).toEqual([]);
  });

  it('that is gone may be signaled without an error', async () => {
    const { child, live } = spawnFixture('exit-at-once.mjs');
    await child.exit;
    expect(() => signalGroup(child.pid ?? 0, 'SIGKILL')).not.toThrow();
    expect(live()).toEqual([]);
  });

  it.runIf(process.platform === 'linux')('of nothing but zombies counts as gone', async () => {
    // `cat` gets a group of its own, and becomes the child of `sleep`, which never asks how it ended.
    const negligent = spawn('sh', ['-c', 'exec 3<&0; setsid cat <&3 & echo $!; exec sleep 60']);
    const [line] = await once(negligent.stdout, 'data');
    const pgid = Number(String(line));
    await until('the shell is gone', () => readFileSync(`/proc/${negligent.pid}/comm`, 'utf8') === 'sleep\n');
    await until('the group exists', () => isGroupAlive(pgid));
    negligent.stdin.end();
    await until('the zombie counts as gone', () => !isGroupAlive(pgid));
    expect(() => process.kill(-pgid, 0)).not.toThrow();
    negligent.kill('SIGKILL');
    await once(negligent, 'exit');
  });
});
