import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { hostIdentity, identify, systemWithPs } from '../../src/host/process/processes.js';
import { folderWith } from '../config/files.js';
import { IS_WINDOWS } from '../support/platform.js';
import { spawnFixture } from './spawned.js';

describe('the identity of a process', () => {
  it('stays the same while it lives, and is there no more afterwards', async () => {
    const { child, says } = spawnFixture('end-on-eof.mjs');
    const atOnce = await identify(child.pid ?? 0);
    await says('up');
    expect(atOnce).toMatchObject({ startTime: expect.stringMatching(/./), isZombie: false });
    expect(await identify(child.pid ?? 0)).toEqual(atOnce);
    child.stdin.end();
    await child.exit;
    expect(await identify(child.pid ?? 0)).toBeUndefined();
  });

  it('is another one than that of a process started before', async () => {
    const { child, says } = spawnFixture('end-on-eof.mjs');
    await says('up');
    expect((await identify(child.pid ?? 0))?.startTime).not.toBe((await identify(process.pid))?.startTime);
  });

  it.skipIf(IS_WINDOWS)('of a zombie can be told from that of the living', async () => {
    // The first `sleep` becomes the child of the second, which never asks how it ended.
    const negligent = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60']);
    const [line] = await once(negligent.stdout, 'data');
    const zombie = Number(String(line));
    const before = await identify(zombie);
    while (!(await identify(zombie))?.isZombie) await new Promise((resolve) => setTimeout(resolve, 5));
    expect((await identify(zombie))?.startTime).toBe(before?.startTime);
    negligent.kill('SIGKILL');
    await once(negligent, 'exit');
  });

  it.skipIf(IS_WINDOWS)('is the same in all time zones on systems where `ps` tells the start time', async () => {
    // As `ps` of macOS, which prints the start in the time zone of its environment.
    const folder = folderWith();
    const script = `console.log('S   ', new Date(1e12).toLocaleString('en-US', { timeZone: process.env.TZ?.replace('UTC0', 'UTC') }))`;
    writeFileSync(join(folder, 'ps'), `#!${process.execPath}\n${script}\n`, { mode: 0o755 });
    onTestFinished(() => void vi.unstubAllEnvs());
    const seen = [];
    for (const zone of ['Asia/Tokyo', 'America/New_York']) {
      vi.stubEnv('TZ', zone);
      seen.push(await systemWithPs(join(folder, 'ps')).identify(1));
    }
    expect(seen[0]?.startTime).toMatch(/2001/);
    expect(seen[1]).toEqual(seen[0]);
  });

  // Windows has no `ps`; `test/host/process/windows.test.ts` tests what stands for it.
  it.skipIf(IS_WINDOWS)('is unknown where `ps` cannot tell, and not that of a process that has ended', async () => {
    const folder = folderWith();
    const ps = join(folder, 'ps');
    const answer = (script: string) => writeFileSync(ps, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    answer('exit 1');
    expect(await systemWithPs(ps).identify(1)).toBeUndefined();
    answer('echo no resources >&2; exit 71');
    await expect(systemWithPs(ps).identify(1)).rejects.toThrow('71');
    answer('kill -9 $$');
    await expect(systemWithPs(ps).identify(1)).rejects.toThrow();
  });

  it.skipIf(IS_WINDOWS)('is told without the usage where `ps` of macOS has no entitlement for it', async () => {
    const ps = join(folderWith(), 'ps');
    // As that program: the rows without the refused columns, and a failure.
    const refuse =
      'case "$*" in *rss=*) for column in rss time; do echo "ps: $column: requires entitlement" >&2; done; exit 1;; esac';
    const row = 'echo "    7     1     7 Ss   Mon Nov 29 08:01:02 2026    "';
    writeFileSync(ps, `#!/bin/sh\n${row}\n${refuse}\n`, { mode: 0o755 });
    const identity = { startTime: 'Mon-Nov-29-08:01:02-2026', startedAtMs: 0 };
    expect(await systemWithPs(ps).list()).toEqual([{ pid: 7, ppid: 1, pgid: 7, ...identity }]);
  });

  it('is compared on the same host only, which stays the same', () => {
    expect(hostIdentity()).toBe(hostIdentity());
    expect(hostIdentity()).not.toBe('');
  });
});
