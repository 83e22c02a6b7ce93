import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openProcessLock } from '../../src/host/process/process-lock.js';
import { builtModule } from '../support/built-module.js';
import { SHORT_TMP } from '../support/platform.js';
import { fixture } from '../support/processes.js';
import { repetitions } from '../support/repetitions.js';

let module: string;
beforeAll(async () => {
  module = await builtModule('host/process/process-lock.ts');
});

let folder: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(SHORT_TMP, 'tlk-'));
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

const lock = () => openProcessLock(join(folder, 'lock'), () => {});

describe('the lock of processes', () => {
  it('is held by one process at a time', async () => {
    writeFileSync(join(folder, 'count'), '0');
    const [processes, times] = [8, repetitions({ full: 60, short: 20 })];
    const all = Array.from({ length: processes }, () => once(start(String(times)), 'exit'));
    expect(await Promise.all(all)).toEqual(Array.from({ length: processes }, () => [0, null]));
    expect(readFileSync(join(folder, 'count'), 'utf8')).toBe(String(processes * times));
  });

  it.each(['SIGKILL', undefined] as const)('F241: is free after its holder has ended (%s)', async (signal) => {
    const child = start('hold');
    await once(child.stdout, 'data');
    const waiting = lock().acquire(new AbortController().signal);
    if (signal === undefined) child.stdin?.end();
    else child.kill(signal);
    await (await waiting)();
  });

  it('is not waited for any longer than its caller wants, whose reason it gives', async () => {
    const child = start('hold');
    await once(child.stdout, 'data');
    const abort = new AbortController();
    const waiting = lock().acquire(abort.signal);
    abort.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(lock().acquire(abort.signal)).rejects.toThrow('enough');
  });
});
