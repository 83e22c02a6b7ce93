import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { activityText } from '../../../src/cli/commands/hub/logs.js';
import { CallFile, CallLog, type EndedCall, type LoggedCall } from '../../../src/extras/record/call-log.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import { folderWith } from '../../config/files.js';

let folder: string;
beforeEach(() => {
  folder = folderWith();
});
const CALL: EndedCall = {
  ...{ client: { name: 'agent', version: '1', session: 1 }, instance: 'files~2', generation: 4 },
  ...{ method: 'tools/call', name: 'files__read', requestId: '7', outcome: 'ok', reason: undefined, rule: undefined },
  remarks: [],
  ...{ durationMs: 12.345, bytesIn: 47, bytesOut: 48, params: undefined, result: undefined },
};

async function logged(calls: readonly EndedCall[], wantsContent = false): Promise<string[]> {
  const secrets = new KnownSecrets();
  secrets.know([{ env: { API_KEY: 'some-secret-1' }, args: [] }]);
  const file = join(folder, 'calls.jsonl');
  const sink = new CallFile(file);
  const onFault = () => expect.unreachable();
  const log = new CallLog({ sink, config: '/c/trunkline.yaml', wantsContent, redact: secrets.redact, onFault });
  for (const call of calls) log.ended(call);
  await log.close();
  if (process.platform !== 'win32') expect(statSync(file).mode & 0o777).toBe(0o600);
  return readFileSync(file, 'utf8').split('\n').slice(0, -1);
}

describe('the call log', () => {
  it('has one line for each call', async () => {
    const other = { ...CALL, client: { ...CALL.client, session: 2 } };
    const [one, two, three] = (await logged([CALL, CALL, other])).map((line): LoggedCall => JSON.parse(line));
    expect(one).toEqual({
      ...{ time: expect.any(String), client: 'agent/1', session: expect.stringMatching(/^[0-9a-f]{8}$/) },
      ...{ server: 'files', method: 'tools/call', tool: 'files__read', outcome: 'ok', ms: 12.3 },
      ...{ in: 47, out: 48, id: '7', gen: 4, config: '/c/trunkline.yaml' },
    });
    expect(two?.session).toBe(one?.session);
    expect(three?.session).not.toBe(one?.session);
  });

  it('names the user, or the machine, of a call', async () => {
    const by = (kind: 'user' | 'machine') => ({
      ...CALL,
      client: { ...CALL.client, user: { principal: 'p', name: `x${'y'.repeat(600)}`, kind, groups: [] } },
    });
    const [user, machine] = (await logged([by('user'), by('machine')])).map((line): LoggedCall => JSON.parse(line));
    expect([user?.user?.length, user?.machine, machine?.user]).toEqual([507, undefined, undefined]);
    expect(machine?.machine).toBe(user?.user);
  });

  it('has the members that the page about commands lists', async () => {
    const failed = {
      ...CALL,
      reason: 'timeout',
      params: { text: '{}', isCut: false },
      result: { text: '{}', isCut: false },
    };
    const [line = ''] = await logged([failed], true);
    const page = readFileSync(join(import.meta.dirname, '../../../docs/commands.md'), 'utf8');
    const [, row = ''] = /^\| `activity` \| (the lines of .*)$/m.exec(page) ?? [];
    for (const member of Object.keys(JSON.parse(line))) expect(row).toMatch(new RegExp(`["\`]${member}["\`]`));
    const [, always = ''] = /`(\{[^`]*\})`/.exec(row) ?? [];
    const listed = [...always.matchAll(/"(\w+)"/g)].map(([, member]) => member);
    expect(Object.keys(JSON.parse(line))).toEqual(expect.arrayContaining(listed));
  });

  it('has arguments and results without secrets, and cut, with no half of a secret at the cut', async () => {
    const long = { text: `${'x'.repeat(16_380)}some`, isCut: true };
    const call = { ...CALL, params: { text: '{"key":"some-secret-1"}', isCut: false }, result: long };
    const [line = ''] = await logged([call], true);
    const { arguments: args, result }: LoggedCall = JSON.parse(line);
    expect(args).toBe('{"key":"[redacted]"}');
    expect(result).toBe(`${'x'.repeat(4_096)}… [cut]`);
  });

  it('has short lines, whatever the client and the server write', async () => {
    const long = 'x'.repeat(100_000);
    const call = { ...CALL, name: long, requestId: `"${long}"`, reason: long, client: { ...CALL.client, name: long } };
    const [line = ''] = await logged([call]);
    expect(line.length).toBeLessThan(4_096);
    expect(JSON.parse(line)).toMatchObject({ tool: expect.stringMatching(/^x+… \[cut\]$/), outcome: 'ok' });
  });

  it('shows the rule that has denied a call', async () => {
    const denied: EndedCall = { ...CALL, outcome: 'failed', reason: 'denied', rule: 'servers.files.rules[0]' };
    const [line = ''] = await logged([denied]);
    expect(activityText(line, 'files')).toContain('failed (denied by servers.files.rules[0])');
  });

  it('shows what interceptors have found about a call that went on', async () => {
    const [line = ''] = await logged([{ ...CALL, remarks: ['interceptor guard/pii: a name'] }]);
    expect(JSON.parse(line).findings).toEqual(['interceptor guard/pii: a name']);
    expect(activityText(line, undefined)).toMatch(/; interceptor guard\/pii: a name$/);
  });

  it('shows one line a call to a person, or only those of one server', async () => {
    const [line = ''] = await logged([{ ...CALL, outcome: 'failed', reason: 'child_exited' }]);
    expect(
      activityText(line, undefined)
        ?.replace(/^[\d-]+ [\d:]+/, 'TIME')
        .replace(/\w{8}$/, 'SESSION'),
    ).toBe('TIME files files__read: failed (child_exited), 12.3 ms, 47 B in, 48 B out, agent/1 SESSION');
    expect(activityText(line, 'other')).toBeUndefined();
    expect(activityText('{"half', undefined)).toBeUndefined();
    expect(activityText('{"time":"2026-01-01T00:00:00Z","dropped":3}', undefined)).toMatch(/3 calls are missing here/);
  });
});
