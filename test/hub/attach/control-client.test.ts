import { mkdtempSync, rmSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { openControl, succeedOlder } from '../../../src/hub/attach/control-client.js';
import { claimSuccessor, hubFiles, latestHub } from '../../../src/hub/hub-folder.js';
import { playHub } from '../forms.js';

it('a command that is given after the end of the hub fails', async () => {
  // The path of a socket is short.
  const folder = mkdtempSync('/tmp/tlq-');
  const claim = await claimSuccessor(folder, 0);
  onTestFinished(async () => {
    await new Promise((resolve) => claim?.listener?.close(resolve));
    rmSync(folder, { recursive: true, force: true });
  });
  if (claim?.listener === undefined) throw new Error('no claim');
  const sockets = playHub(claim.listener, hubFiles(folder, 1), '{"ok":true,"version":"1.0.0","pid":1}');
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
  // The path of a socket is short.
  const folder = mkdtempSync('/tmp/tls-');
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const older = await claimSuccessor(folder, 0);
  let moved = 0;
  older?.listener?.on('connection', () => {
    moved += 1;
  });
  const cannot = () => {
    throw new Error('node cannot be run');
  };
  await succeedOlder(folder, { number: 1, version: '0.0.1' }, cannot);
  expect([latestHub(folder), moved]).toEqual([2, 0]);
  await new Promise((resolve) => older?.listener?.close(resolve));
});
