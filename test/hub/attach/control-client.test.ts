import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openControl, succeedOlder } from '../../../src/hub/attach/control-client.js';
import { claimSuccessor, hubFiles, latestHub } from '../../../src/hub/hub-folder.js';
import { SHORT_TMP } from '../../support/platform.js';
import { listening, playHub } from '../forms.js';

/** The process of the first hub of a folder, which listens as hubs of this system do. */
async function firstHub(): Promise<{ readonly folder: string; readonly hub: Server }> {
  // The path of a socket is short.
  const folder = mkdtempSync(join(SHORT_TMP, 'tlq-'));
  const claim = await claimSuccessor(folder, 0);
  if (claim === undefined) throw new Error('Another process has claimed the number');
  const hub = await listening(claim, folder);
  onTestFinished(async () => {
    await new Promise((resolve) => hub.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder, hub };
}

it('a command that is given after the end of the hub fails', async () => {
  const { folder, hub } = await firstHub();
  const sockets = playHub(hub, hubFiles(folder, 1), '{"ok":true,"version":"1.0.0","pid":1}');
  const control = await openControl(folder, '1.0.0');
  if (typeof control === 'string') throw new Error(control);
  const pending = control.request('describe');
  for (const socket of sockets) socket.destroy();
  await expect(pending).rejects.toThrow('The gateway ended before it answered.');
  await control.closed;
  await new Promise(setImmediate);
  await expect(control.request('report')).rejects.toThrow('The gateway ended before it answered.');
});

it('an older hub serves on if its successor cannot be started', async () => {
  const { folder, hub } = await firstHub();
  let moved = 0;
  hub.on('connection', () => {
    moved += 1;
  });
  const cannot = () => {
    throw new Error('node cannot be run');
  };
  await succeedOlder(folder, { number: 1, version: '0.0.1' }, cannot);
  expect([latestHub(folder), moved]).toEqual([2, 0]);
});
