import { describe, expect, it } from 'vitest';
import { hubCommands } from '../../src/app/hub-commands.js';
import { HubLife } from '../../src/hub/hub-life.js';
import { FakeClock } from '../support/fake-clock.js';

/** A hub that waits for its first client. */
function waitingHub() {
  const clock = new FakeClock();
  const life = new HubLife(clock);
  const commands = hubCommands({
    ...{ life, platform: { clock }, place: '/hubs/key/4', startedAt: clock.now() },
    ...{ configFile: '/c/trunkline.yaml', logFile: '/hubs/key/hub.log' },
    running: new Promise(() => {}),
    hub: () => undefined,
  });
  const context = { emit: () => true, signal: new AbortController().signal };
  return { clock, life, run: (command: string, params = {}) => commands[command]?.(params, context) };
}

describe('a hub that waits for its first client', () => {
  it('describes itself at once, without clients and servers', async () => {
    const { clock, run } = waitingHub();
    clock.advance(3_000);
    expect(await run('describe', { withUsage: true })).toMatchObject({
      ...{ pid: process.pid, number: 4, configFile: '/c/trunkline.yaml', logFile: '/hubs/key/hub.log' },
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
