import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Supervisor } from '../../src/servers/supervision/supervisor.js';
import { sampleSpec } from '../servers/supervision/sample-spec.js';
import { flush, ScriptedLauncher } from '../servers/supervision/scripted-launcher.js';
import { FakeClock } from '../support/fake-clock.js';
import { GatewayProcess } from '../support/gateway-process.js';
import { FAULTY, textOf } from '../support/in-process-gateway.js';
import { until } from '../support/processes.js';
import type { Message } from '../support/wire.js';

let gateway: GatewayProcess | undefined;
afterEach(async () => {
  await gateway?.dispose();
  gateway = undefined;
});

async function start(options: { via?: string[]; args?: string[] }): Promise<GatewayProcess> {
  const servers = { f: { program: FAULTY, restart: { firstDelay: '10ms' } } };
  gateway = await GatewayProcess.start({ servers, ...options });
  await gateway.untilState('f', 'ready');
  return gateway;
}

// No file can grow then, as on a disk that is full; pipes and files that are there are as ever.
const FULL_DISK = ['sh', '-c', 'ulimit -f 0; exec "$0" "$@"'];

describe('a disk that is full', () => {
  it('F57: fails no call, and stderr says that run file and recording cannot be written', async () => {
    const full = await start({ via: FULL_DISK, args: ['--record', 'RUN/x.jsonl'] });
    expect(textOf((await full.call('f__answer', { nonce: 'n' })).message.result)).toBe('n');
    await until('the run file is told', () => full.stderr.includes('the run file cannot be written'));
    const words = /x\.jsonl cannot be written: it would be larger than a file may be here \(EFBIG\)/;
    await until('the recording is told', () => words.test(full.stderr));
    // No empty one is left.
    expect(existsSync(join(full.folder, 'x.jsonl'))).toBe(false);
  });

  it('F57: fails no call, and stderr says that the log cannot be written, once', async () => {
    const full = await start({ via: FULL_DISK, args: ['-vv', '--log-file', 'RUN/x.log'] });
    expect(textOf((await full.call('f__answer', { nonce: 'n' })).message.result)).toBe('n');
    expect(
      full.stderr.match(
        /The log file .*x\.log cannot be written: it would be larger than a file may be here \(EFBIG\); raise the limit/g,
      ),
    ).toHaveLength(1);
    expect(readFileSync(join(full.folder, 'x.log'), 'utf8')).toBe('');
  });
});

describe('a machine without descriptors left', () => {
  it.runIf(process.platform === 'linux')(
    'F57: is reported by the status, and counts as no failure of the server, which is started again after 5 s',
    async () => {
      const short = await start({});
      // Open descriptors stay open, and nothing can be opened any more.
      execFileSync('prlimit', ['--pid', String(short.pid), '--nofile=3:']);
      process.kill((await short.status('f')).pid, 'SIGKILL');
      const hasFailed = ({ lastFailure }: Message) => lastFailure?.includes('(EMFILE)');
      const status = await short.untilServer('f', 'cannot be started', hasFailed);
      expect(status.state).toBe('backoff');
      expect(status.retryInSeconds).toBe(5);
      expect(status.problem).toContain('This machine lacks a resource that a new process needs');
      execFileSync('prlimit', ['--pid', String(short.pid), '--nofile=1024:']);
    },
  );
});

describe('a machine that slept for hours', () => {
  const keys = Array.from({ length: 20 }, (_, index) => `server-${index}`);
  const HOURS_MS = 8 * 60 * 60_000;

  function supervising() {
    const clock = new FakeClock();
    const launcher = new ScriptedLauncher();
    launcher.endsAtOnce = true;
    const supervisor = new Supervisor({ clock, random: () => 0.5, launcher, startLimit: 4, onChange: () => {} });
    for (const key of keys) supervisor.add(sampleSpec(key));
    return { clock, launcher, supervisor };
  }

  it('F57: changes nothing for servers that were ready', async () => {
    const { clock, launcher, supervisor } = supervising();
    launcher.onLaunch = ({ events }) => events.ready();
    for (const key of keys) supervisor.start(key);
    clock.jump(10_000);
    await flush();
    expect(launcher.launches).toHaveLength(20);
    clock.jump(HOURS_MS);
    await flush();
    clock.jump(HOURS_MS);
    await flush();
    expect(launcher.launches).toHaveLength(20);
    for (const key of keys) expect(supervisor.snapshot(key).state).toBe('ready');
  });

  it('F57: starts each failed server once, within the usual limit of starts at a time', async () => {
    const { clock, launcher, supervisor } = supervising();
    launcher.onLaunch = ({ events }) => events.exited({ code: 1, signal: null });
    for (const key of keys) supervisor.start(key);
    await flush();
    const before = launcher.launches.length;
    let running = 0;
    let most = 0;
    launcher.onLaunch = () => {
      running += 1;
      most = Math.max(most, running);
    };
    clock.jump(HOURS_MS);
    await flush();
    expect(most).toBe(4);
    for (const { key, events } of launcher.launches.slice(before)) {
      events.ready();
      running -= 1;
      expect(supervisor.snapshot(key).state).toBe('ready');
    }
    while (launcher.launches.length - before < 20) {
      const launch = launcher.latest();
      launch.events.ready();
      running -= 1;
      await flush();
    }
    clock.jump(HOURS_MS);
    await flush();
    expect(launcher.launches.length - before).toBe(20);
  });
});
