import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readPastCalls } from '../../../../src/cli/commands/web/past-calls.js';
import type { LoggedCall } from '../../../../src/extras/record/call-log.js';

const MINE = '/mine/trunkline.yaml';

function line(minute: number, more: { [Member in keyof LoggedCall]?: LoggedCall[Member] | undefined } = {}): string {
  const time = new Date(Date.UTC(2026, 10, 4, 9, minute)).toISOString();
  const call = {
    client: 'my/editor/1.2',
    session: '0a1b2c3d',
    server: 'files',
    method: 'tools/call',
    tool: 'files__read',
  };
  return JSON.stringify({
    time,
    ...call,
    outcome: 'ok',
    ms: 12.3,
    in: 47,
    out: 48,
    id: '7',
    gen: 1,
    config: MINE,
    ...more,
  });
}

function logOf(...lines: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'calls.jsonl');
  writeFileSync(file, lines.map((each) => `${each}\n`).join(''));
  return file;
}

it('the past of a page is that of its own configuration, whatever the names in the log are', async () => {
  const others = [
    line(1, { config: '/other/trunkline.yaml' }),
    line(2, { config: '/other/trunkline.yaml', tool: `x","config":"${MINE}` }),
    JSON.stringify({ time: '2026-11-04T09:03:00.000Z', dropped: 3 }),
    `{"time":"2026-11-04T09:04:00.000Z","config":"${MINE}","cut`,
  ];
  const failed = line(6, { outcome: 'failed', reason: 'timeout', server: undefined, tool: undefined });
  const rows = await readPastCalls(logOf(...others, line(5), failed), MINE);
  expect(rows).toMatchObject([
    {
      client: 'my/editor 1.2',
      server: 'files',
      name: 'files__read',
      outcome: 'ok',
      reason: null,
      ms: 12.3,
      bytesOut: 48,
    },
    { server: null, name: null, outcome: 'failed', reason: 'timeout', at: Date.UTC(2026, 10, 4, 9, 6) },
  ]);
});

it('the past of a page has the latest 500 calls, with numbers that grow and are below those of calls of the hub', async () => {
  const rows = await readPastCalls(logOf(...Array.from({ length: 1_700 }, (_, at) => line(Math.floor(at / 30)))), MINE);
  const ids = rows.map(({ id }) => id);
  expect(ids).toHaveLength(500);
  expect(ids).toEqual([...new Set(ids)].toSorted((one, other) => one - other));
  expect(rows.at(-1)?.at).toBe(Date.UTC(2026, 10, 4, 9, 56));
  expect(Math.max(...ids)).toBeLessThan(Date.UTC(2026, 10, 4) * 1_000);
});

it('the past of a page is empty without a log', async () => {
  expect(await readPastCalls('/nowhere/calls.jsonl', MINE)).toEqual([]);
});
