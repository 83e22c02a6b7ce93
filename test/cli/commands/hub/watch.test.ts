import { EventEmitter } from 'node:events';
import stringWidth from 'string-width';
import { describe, expect, it } from 'vitest';
import {
  view,
  type WatchState,
  type WatchTerminalOptions,
  watchInTerminal,
  withFacts,
  withKey,
} from '../../../../src/cli/commands/hub/watch.js';
import type { HubDescription } from '../../../../src/hub/control.js';
import type { ProcessReport, ServerReport, StatusReport } from '../../../../src/status/status.js';
import { flush } from '../../../support/wire.js';

interface Told {
  readonly state?: ServerReport['state'];
  readonly calls?: readonly number[];
  readonly p50?: number;
  readonly cause?: string;
  readonly isReviewed?: boolean;
}

/** The answers of a hub about these servers. */
function facts(servers: Readonly<Record<string, Told>>, at: number, clients = 1) {
  const entries = Object.entries(servers);
  const reports = entries.map(([server, { state = 'ready', p50, cause, isReviewed }]) => ({
    ...{
      server,
      state,
      latencyMs: p50 === undefined ? null : { p50, p95: p50 },
      cause: cause === undefined ? [] : [cause],
    },
    ...{ problem: '', lastFailure: null, approval: isReviewed ? { approved: 1, firstUse: false, fault: null } : null },
  }));
  const processes = entries.flatMap(([server, { calls = [0] }]) =>
    calls.map((count): Partial<ProcessReport> => ({ server, calls: count, memoryBytes: 2 ** 20 })),
  );
  const hub = {
    ...{ pid: 10, version: '1.2.0', uptimeSeconds: 3_700, configFile: '/c/trunkline.yaml', isDraining: false },
    clients: Array.from({ length: clients }, (_, index) => ({
      ...{ name: `client ${index}`, version: null, pid: 20 + index, since: '', uptimeSeconds: 61, inFlight: 2 },
    })),
    servers: processes,
  };
  return { hub: hub as unknown as HubDescription, report: { servers: reports } as unknown as StatusReport, at };
}

const SERVERS: Readonly<Record<string, Told>> = {
  files: { calls: [7, 3], p50: 12 },
  git: {
    state: 'parked',
    cause: 'Error: GIT_TOKEN is not set, and without it no repository of the company can be read',
  },
  web: { isReviewed: true },
};

function pressed(state: WatchState, ...keys: string[]): WatchState {
  return keys.reduce((each, key) => withKey(each, key).state, state);
}

describe('the state of a watched hub', () => {
  it('sums the instances of a server, and knows its calls per second from the second look on', () => {
    const first = withFacts(undefined, facts(SERVERS, 0));
    expect(first.servers[0]).toMatchObject({ calls: 10, callsPerSecond: null, p50Ms: 12, memoryBytes: 2 ** 21 });
    const second = withFacts(first, facts({ ...SERVERS, files: { calls: [12, 3] } }, 2_000));
    expect(second.servers[0]?.callsPerSecond).toBe(2.5);
    // One of its instances has ended.
    expect(withFacts(second, facts({ ...SERVERS, files: { calls: [12] } }, 3_000)).servers[0]?.callsPerSecond).toBe(0);
  });

  it('keeps the chosen server, unless it is gone', () => {
    const chosen = pressed(withFacts(undefined, facts(SERVERS, 0)), 'down');
    expect(withFacts(chosen, facts(SERVERS, 1_000)).chosen).toBe('git');
    expect(withFacts(chosen, facts({ web: {} }, 1_000)).chosen).toBe('web');
  });

  it('does what keys say with the chosen server', () => {
    const state = withFacts(undefined, facts(SERVERS, 0));
    expect(pressed(state, 'up').chosen).toBe('files');
    expect(pressed(state, 'down', 'down', 'down').chosen).toBe('web');
    expect(withKey(pressed(state, 'down'), 'r').effect).toEqual({ kind: 'restart', server: 'git' });
    expect(withKey(state, 'q').effect).toEqual({ kind: 'quit' });
    expect(pressed(state, 'l').log).toEqual({ server: 'files', lines: [] });
    expect(pressed(state, 'l', 'down').log?.server).toBe('git');
    expect(pressed(state, 'l', 'l').log).toBeUndefined();
    expect(pressed(state, 'a').note).toContain('need no approval');
    expect(pressed(state, 'down', 'down', 'a').note).toContain('trunkline approve web');
    expect(withKey(state, 'x')).toEqual({ state });
  });
});

describe('the screen', () => {
  const state = withFacts(withFacts(undefined, facts(SERVERS, 0)), facts(SERVERS, 1_000));

  it('shows servers, clients and keys', () => {
    const lines = view(state, 80, 24, false);
    expect(lines.filter((line) => line !== '')).toEqual([
      'Trunkline 1.2.0  hub 10, up 1 h 1 min  3 servers, 1 client  /c/trunkline.yaml',
      '   SERVER  STATE     CALLS/S  P50    MEMORY  LAST ERROR',
      '>  files   ●\u00a0ready   0.0      12 ms  2 MiB',
      '   git     ✖\u00a0parked  0.0      -      1 MiB   Error: GIT_TOKEN is not set, and w…',
      '   web     ●\u00a0ready   0.0      -      1 MiB',
      'CLIENT    VERSION  PID  ATTACHED FOR  IN FLIGHT',
      'client 0  -        20   1 min 1 s     2',
      `${'↑↓ choose  r restart  l log  a approve  q quit'.padEnd(80)}`,
    ]);
  });

  it.each([
    [80, 24],
    [120, 30],
    [40, 10],
    [20, 6],
  ])('fills %i columns and %i lines exactly, with many servers, a log and colors too', (width, height) => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`server-${index}`, {}]));
    let crowded = withFacts(undefined, facts(many, 0, 30));
    for (let index = 0; index < 20; index += 1) crowded = pressed(crowded, 'down');
    const log = {
      server: 'server-20',
      lines: Array.from({ length: 30 }, (_, index) => `${'long '.repeat(40)}${index}`),
    };
    for (const each of [state, crowded, { ...crowded, log }]) {
      for (const isColored of [false, true]) {
        const lines = view(each, width, height, isColored);
        expect(lines).toHaveLength(height);
        expect(lines.filter((line) => stringWidth(line) > width)).toEqual([]);
      }
      // The chosen server is always visible.
      expect(view(each, width, height, false).some((line) => line.startsWith('>'))).toBe(true);
    }
    expect(view({ ...crowded, log }, 80, 24, false).join('\n')).toContain('The last output of server-20:');
  });

  it('escapes what servers and clients say', () => {
    const evil = withFacts(undefined, facts({ a: { cause: 'bad\u001b[2J' } }, 0));
    const log = { server: 'a', lines: ['\u001b]0;title\u0007'] };
    expect(view({ ...evil, log }, 80, 24, false).join('')).not.toContain('\u001b');
  });
});

const HUB = {
  ...{ pid: 1, version: '1.0.0', uptimeSeconds: 1, configFile: '/c', isDraining: false, clients: [] },
  servers: [],
};
const REPORT = {
  servers: [
    { server: 'files', state: 'ready', latencyMs: null, cause: [], problem: '', lastFailure: null, approval: null },
  ],
};

/** A terminal of 80 columns, and a hub with one server. */
function start(hubEnded: Promise<void> = new Promise(() => {})) {
  const input = Object.assign(new EventEmitter(), {
    ...{ resume: () => {}, pause: () => {} },
    setRawMode: (isRaw: boolean) => modes.push(isRaw),
  });
  const modes: boolean[] = [];
  const written: string[] = [];
  const output = Object.assign(new EventEmitter(), {
    ...{ columns: 80, rows: 24, isTTY: true, write: (text: string) => written.push(text) },
  });
  const restarted: string[] = [];
  const options = {
    ...{ input, output, hubEnded },
    readFacts: async () => ({ hub: HUB, report: REPORT, at: 0 }),
    readLog: async () => ['it listens'],
    restart: async (server: string) => {
      restarted.push(server);
    },
  };
  const code = watchInTerminal(options as unknown as WatchTerminalOptions);
  const press = (name: string, ctrl = false) => input.emit('keypress', undefined, { name, ctrl });
  return { code, press, modes, written, restarted, output, input };
}

const LEFT = '\x1b[?25h\x1b[?1049l';

describe('status --watch on a terminal', () => {
  it.each([
    ['q', false, 0],
    ['c', true, 130],
  ])('shows the servers until %s (with Ctrl: %s) and restores the terminal', async (name, ctrl, expected) => {
    const { code, press, modes, written, input, output } = start();
    await flush();
    expect(written[0]).toBe('\x1b[?1049h\x1b[?25l');
    expect(written.at(-1)).toContain('files');
    press(name, ctrl);
    expect(await code).toBe(expected);
    expect(written.at(-1)).toBe(LEFT);
    expect(modes).toEqual([true, false]);
    expect(input.listenerCount('keypress') + output.listenerCount('resize')).toBe(0);
  });

  it('F132: ends with the hub, and can be left before the first look', async () => {
    const ended = start(Promise.resolve());
    expect(await ended.code).toBe(3);
    expect(ended.written.at(-1)).toBe(LEFT);
    const early = start();
    early.press('q');
    expect(await early.code).toBe(0);
  });

  it('restarts the chosen server and shows its log, and draws only what has changed', async () => {
    const { code, press, written, restarted, output } = start();
    await flush();
    const drawn = written.length;
    output.emit('resize');
    press('up');
    expect(written).toHaveLength(drawn);
    press('r');
    await flush();
    expect(restarted).toEqual(['files']);
    expect(written.at(-1)).toContain('files is being restarted');
    press('l');
    await flush();
    expect(written.at(-1)).toContain('it listens');
    press('q');
    await code;
  });
});
