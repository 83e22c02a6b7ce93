import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { withVaultLock } from '../../src/auth/vault-lock.js';
import { builtModule } from '../support/built-module.js';
import { fixture } from '../support/processes.js';
import { repetitions } from '../support/repetitions.js';

let module: string;
beforeAll(async () => {
  module = await builtModule('auth/vault-lock.ts');
});

let folder: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  // The path of a socket is short.
  folder = mkdtempSync('/tmp/tlk-');
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function start(what: string) {
  const stdio = ['pipe', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, [fixture('lock-holder.mjs'), module, folder, what], { stdio: [...stdio] });
  started.push(child);
  return child;
}

async function holder() {
  const child = start('hold');
  await once(child.stdout, 'data');
  return child;
}

const never = new AbortController().signal;

describe('the lock of a login', () => {
  it('is held by one process at a time', async () => {
    writeFileSync(join(folder, 'count'), '0');
    const [processes, times] = [16, repetitions({ full: 60, short: 20 })];
    const all = Array.from({ length: processes }, () => once(start(String(times)), 'exit'));
    expect(await Promise.all(all)).toEqual(Array.from({ length: processes }, () => [0, null]));
    expect(readFileSync(join(folder, 'count'), 'utf8')).toBe(String(processes * times));
  });

  it.each(['SIGKILL', undefined] as const)('F241: is free after its holder has ended (%s)', async (signal) => {
    const child = await holder();
    const order: string[] = [];
    const waiting = withVaultLock(folder, 'login', never, async () => order.push('held'));
    await withVaultLock(folder, 'another', never, async () => order.push('another login'));
    if (signal === undefined) child.stdin?.end();
    else child.kill(signal);
    await waiting;
    expect(order).toEqual(['another login', 'held']);
  });

  it('is not waited for any longer than its caller wants', async () => {
    await holder();
    const abort = new AbortController();
    const waiting = withVaultLock(folder, 'login', abort.signal, async () => 'held');
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(withVaultLock(folder, 'login', abort.signal, async () => 'held')).rejects.toThrow('enough');
  });

  it('is released when the work fails', async () => {
    const fails = withVaultLock(folder, 'login', never, () => Promise.reject(new Error('failed')));
    await expect(fails).rejects.toThrow('failed');
    expect(await withVaultLock(folder, 'login', never, async () => 'held')).toBe('held');
  });
});
