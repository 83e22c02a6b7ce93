import { describe, expect, it } from 'vitest';
import { Supervisor } from '../../../src/servers/supervision/supervisor.js';
import type { ChildSnapshot } from '../../../src/spec/server-state.js';
import { FakeClock } from '../../support/fake-clock.js';
import { missingSpec } from './sample-spec.js';
import { ScriptedInstaller } from './scripted-installer.js';
import { flush, ScriptedLauncher } from './scripted-launcher.js';

function setUp() {
  const clock = new FakeClock();
  const launcher = new ScriptedLauncher();
  const installer = new ScriptedInstaller();
  const changes: ChildSnapshot[] = [];
  const supervisor = new Supervisor({
    clock,
    random: () => 0.5,
    launcher,
    installer,
    startLimit: 1,
    onChange: (_, snapshot) => changes.push(snapshot),
  });
  supervisor.add(missingSpec());
  return { clock, launcher, installer, supervisor, changes };
}

describe('a child whose package is missing', () => {
  it('F9: installs for as long as that takes, and the time and failures of starts count only from then on', async () => {
    const { clock, launcher, installer, supervisor, changes } = setUp();
    supervisor.start('files');
    clock.advance(200_000);
    expect(supervisor.snapshot('files')).toMatchObject({ state: 'installing', installingSince: 0, missing: 'pkg' });
    await installer.latest().succeed();
    launcher.latest().events.ready();
    expect(changes.map(({ state }) => state)).toEqual(['installing', 'starting', 'starting', 'ready']);
    expect(launcher.latest().args).toEqual(['program']);
    expect(supervisor.snapshot('files')).toMatchObject({
      generation: 1,
      restarts: 0,
      consecutiveFailures: 0,
      missing: undefined,
      installingSince: undefined,
    });
    expect(installer.installs).toHaveLength(1);
  });

  it('is not installed again when it is started again', async () => {
    const { clock, launcher, installer, supervisor } = setUp();
    launcher.endsAtOnce = true;
    supervisor.start('files');
    await installer.latest().succeed();
    launcher.latest().events.exited({ code: 1, signal: null });
    await flush();
    clock.advance(500);
    expect(supervisor.snapshot('files')).toMatchObject({ state: 'starting', generation: 2, restarts: 1 });
    expect(installer.installs).toHaveLength(1);
  });

  it('holds no start slot while it installs', () => {
    const { launcher, supervisor } = setUp();
    const { missing: _, ...complete } = missingSpec('other');
    supervisor.add(complete);
    supervisor.start('files');
    supervisor.start('other');
    expect(launcher.launches.map(({ key }) => key)).toEqual(['other']);
  });

  it('gives up the installation when it is stopped, and does not hear of it any more', async () => {
    const { clock, launcher, installer, supervisor } = setUp();
    supervisor.start('files');
    const first = installer.latest();
    await supervisor.stop('files');
    expect(first.isCancelled).toBe(true);
    supervisor.start('files');
    await first.fail('given up');
    expect(supervisor.snapshot('files').state).toBe('installing');
    await installer.latest().succeed();
    expect(launcher.launches).toHaveLength(1);
    expect(installer.latest().isCancelled).toBe(true);
    await Promise.all([supervisor.stopAll({ termAfterMs: 0, killAfterMs: 0 }), launcher.latest().vanish()]);
    expect(clock.pending).toBe(0);
  });
});
