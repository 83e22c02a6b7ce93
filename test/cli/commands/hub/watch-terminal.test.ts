import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type WatchTerminalOptions, watchInTerminal } from '../../../../src/cli/commands/hub/watch.js';
import { flush } from '../../../support/wire.js';

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
