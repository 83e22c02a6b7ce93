import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { GatewayProcess } from '../../../src/app/gateway-process.js';
import { createPlatform } from '../../../src/app/platform.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import { HubLife } from '../../../src/hub/hub-life.js';
import { gatewayCommands, hubCommands, recordingCommands } from '../../../src/hub/server/hub-commands.js';
import { FakeClock } from '../../support/fake-clock.js';

/** A hub that waits for its first client. */
function waitingHub() {
  const clock = new FakeClock();
  const life = new HubLife(clock);
  const facts = {
    ...({ life, platform: { clock }, kind: 'hub', number: 4, startedAt: clock.now() } as const),
    ...{ configFile: '/c/trunkline.yaml', logFile: '/hubs/key/hub.log' },
    running: new Promise<never>(() => {}),
    hub: () => undefined,
  };
  const commands = { ...gatewayCommands(facts), ...hubCommands(facts) };
  const context = { emit: () => true, signal: new AbortController().signal };
  return { clock, life, run: (command: string, params = {}) => commands[command]?.(params, context) };
}

describe('a hub that waits for its first client', () => {
  it('describes itself at once, without clients and servers', async () => {
    const { clock, run } = waitingHub();
    clock.advance(3_000);
    expect(await run('describe', { withUsage: true })).toMatchObject({
      ...{ kind: 'hub', pid: process.pid, number: 4, configFile: '/c/trunkline.yaml', logFile: '/hubs/key/hub.log' },
      ...{ uptimeSeconds: 3, hasStarted: false, isDraining: false, clients: [], servers: [] },
    });
    expect(await run('profiles')).toEqual([]);
  });

  it('answers the command to stop before it ends, and tells its clients that a person has stopped it', async () => {
    const { clock, life, run } = waitingHub();
    expect(await run('stop')).toEqual({ clients: 0 });
    expect(life.refusal).toBeUndefined();
    clock.advance(0);
    await life.over;
    expect([life.refusal, life.closing]).toEqual(['ending', 'stopped']);
  });
});

it.each([
  ['own', {}, 'The server "own" has no process that could be restarted: `trunkline status own` says why.'],
  ['own', { withoutInstance: ['own'] }, 'Each session starts a process of "own" for itself, and none runs now.'],
  ['off', {}, 'The server "off" is disabled in the configuration; run: trunkline enable off'],
  ['ow', {}, 'There is no server "ow". Did you mean "own"?'],
])('a server that cannot be restarted is told why: %s, with %j', async (server, status, message) => {
  const config = { servers: [{ key: 'own' }], disabled: ['off'] };
  const composition = { config, restart: () => false, status: () => status } as unknown as GatewayProcess;
  const running = Promise.resolve({ composition });
  const commands = gatewayCommands({ running } as unknown as Parameters<typeof gatewayCommands>[0]);
  const context = { emit: () => true, signal: new AbortController().signal };
  await expect(commands.restart?.({ server }, context)).rejects.toThrow(message);
});

it('a recording ends whose connection was closed before the first client of the hub came', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const facts = { platform: createPlatform(), secrets: new KnownSecrets(), config: { servers: [] } };
  const composition = facts as unknown as GatewayProcess;
  const closed = new AbortController();
  const context = { emit: () => true, signal: closed.signal };
  const commands = recordingCommands(Promise.resolve({ composition }));
  const recording = commands.record?.({ file: join(folder, 'recording.jsonl') }, context);
  closed.abort();
  expect(await recording).toEqual({ written: 0, dropped: 0, fault: undefined });
});
