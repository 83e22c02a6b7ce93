import { mkdtempSync, rmSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { succeedOlder } from '../../../src/hub/attach/control-client.js';
import { claimSuccessor } from '../../../src/hub/claim.js';
import { latestHub } from '../../../src/hub/hub-folder.js';

describe('an older hub', () => {
  it('serves on if its successor cannot be started', async () => {
    // The path of a socket is short.
    const folder = mkdtempSync('/tmp/tls-');
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const older = await claimSuccessor(folder, 0);
    let moved = 0;
    older?.listener.on('connection', () => {
      moved += 1;
    });
    const cannot = () => {
      throw new Error('node cannot be run');
    };
    await succeedOlder(folder, { number: 1, version: '0.0.1' }, cannot);
    expect([latestHub(folder), moved]).toEqual([2, 0]);
    await new Promise((resolve) => older?.listener.close(resolve));
  });
});
