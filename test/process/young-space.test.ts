import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { builtModule } from '../support/built-module.js';

describe('the space for young objects', () => {
  it('is held by a flag that this engine knows, and keeps no process alive', async () => {
    const script = `
      const { holdYoungSpace } = await import('${await builtModule('commands/young-space.ts')}');
      holdYoungSpace();
    `;
    const startedAt = performance.now();
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
    // The engine says so when it does not know a flag.
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  });
});
