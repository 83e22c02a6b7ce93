// A machine that slept for eight hours. The library of `faketime` moves the clocks of the gateway, also the monotonic one.
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';

const library = readdirSync('/usr/lib')
  .map((folder) => join('/usr/lib', folder, 'faketime/libfaketimeMT.so.1'))
  .find((file) => existsSync(file));
const folder = mkdtempSync(join(tmpdir(), 'trunkline-sleep-'));
const offset = join(folder, 'offset');
writeFileSync(offset, '+0');
const env = { LD_PRELOAD: library ?? '', FAKETIME_TIMESTAMP_FILE: offset, FAKETIME_NO_CACHE: '1' };
const gateway = await GatewayProcess.start({ servers: { lab: {} }, env }, { handshake: false });
await gateway.initialize('2025-11-25', { roots: {} });

afterAll(async () => {
  await gateway.dispose();
  rmSync(folder, { recursive: true });
});

describe('a machine that slept for eight hours', () => {
  it('goes on with the call that was in flight, and with the same process of the server', async () => {
    const before = await gateway.untilState('lab', 'ready');
    const call = gateway.call('lab__ask', { method: 'roots/list' });
    await expect.poll(() => gateway.notifications('roots/list')).toHaveLength(1);
    const [asked] = gateway.notifications('roots/list');
    writeFileSync(offset, '+8h');
    // Whatever fell due meanwhile runs before the answer.
    await gateway.status('lab');
    gateway.send(`{"jsonrpc":"2.0","id":${JSON.stringify(asked?.message.id)},"result":{"roots":[]}}`);
    expect((await call).message.result.content[0].text).toContain('"roots":[]');
    expect(await gateway.status('lab')).toMatchObject({ state: 'ready', pid: before.pid, restarts: 0 });
    expect(gateway.stderr).not.toContain('held up');
  });
});
