import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { NothingLeft } from '../support/nothing-left.js';
import { fixture, processesOf } from '../support/processes.js';

const MARK = `nothing-left-${randomUUID()}`;

it('a test that leaves nothing behind passes', async () => {
  await new NothingLeft(MARK).check();
});

type Undo = () => void | Promise<void>;
const WAYS: [what: string, complaint: RegExp, leave: () => Undo | Promise<Undo>][] = [
  ['a process', /^process \d+$/m, leaveProcess],
  ['a timer', /^timers: 1$/m, leaveTimer],
  ['a server', /^handle TCPServerWrap: 1 more$/m, leaveServer],
  ['a listener', /^listener SIGUSR2: 1 more$/m, leaveListener],
];
// Only Linux lists the descriptors of a process.
if (process.platform === 'linux') WAYS.push(['a descriptor', /^descriptor \/dev\/null: 1 more$/m, leaveDescriptor]);

it.each(WAYS)('a test that leaves %s behind fails', async (_, complaint, leave) => {
  const left = new NothingLeft(MARK);
  const undo = await leave();
  try {
    await expect(left.check(200)).rejects.toThrow(complaint);
  } finally {
    await undo();
  }
  await left.check();
});

it('a test that counts something fails unless it is 0 in the end', async () => {
  let pending = 1;
  const left = new NothingLeft(MARK);
  left.count('pending', () => pending);
  await expect(left.check(200)).rejects.toThrow('pending: 1');
  pending = 0;
  await left.check();
});

/** It is no child of ours any more when its shell has ended. */
async function leaveProcess(): Promise<() => void> {
  const shell = spawn('/bin/sh', ['-c', '"$0" "$@" &', process.execPath, fixture('ignore-eof.mjs'), MARK], {
    stdio: 'ignore',
  });
  await once(shell, 'exit');
  return () => {
    for (const pid of processesOf(MARK)) process.kill(pid, 'SIGKILL');
  };
}

function leaveTimer(): () => void {
  const timer = setTimeout(() => {}, 60_000);
  return () => clearTimeout(timer);
}

async function leaveServer(): Promise<() => void> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return () => server.close();
}

function leaveDescriptor(): () => void {
  const fd = openSync('/dev/null', 'r');
  return () => closeSync(fd);
}

function leaveListener(): () => void {
  const listener = () => {};
  process.on('SIGUSR2', listener);
  return () => process.off('SIGUSR2', listener);
}
