import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AccessHeaders, Blocked } from '../../../src/upstream/http/access.js';
import { configuredAccess } from '../../../src/upstream/http/configured-access.js';
import { FakeClock } from '../../support/fake-clock.js';
import { IS_WINDOWS } from '../../support/platform.js';
import { endRun, processesWith, until } from '../../support/processes.js';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headers-command-'));
});

// Fails if a process is left.
afterEach(() => endRun(folder));

const REQUEST = { method: 'POST', url: new URL('https://example.com/mcp') };

/** A command as the configuration has it. The text of each process that it starts has the folder in it. */
function running(line: string, env = {}) {
  const clock = new FakeClock();
  const access = configuredAccess(
    { headers: {}, headersCommand: { line, env } },
    { clock, keepSecret: () => () => {} },
  );
  let outcome: AccessHeaders | Blocked | undefined;
  const start = () => {
    void access.headers(REQUEST).then((given) => {
      outcome = given;
    });
  };
  const finish = async () => {
    // The end of a group is looked at again and again.
    await until('the outcome', () => {
      clock.advance(1);
      return outcome !== undefined;
    });
    return outcome;
  };
  return { access, clock, start, finish };
}

function node(script: string): string {
  return `"${process.execPath}" -e "${script}" "${folder}"`;
}

describe('the command for headers', () => {
  it.each<readonly [string, string]>([
    ['exit 3', 'ended with exit code 3'],
    [node(`console.log('secret'); console.error('secret'); process.exit(1)`), 'ended with exit code 1'],
    ...(IS_WINDOWS ? [] : [['kill -9 $$', 'was ended by SIGKILL'] as const]),
    ...['echo secret', 'echo \'{"secret":1}\'', 'echo \'["secret"]\'', 'echo \'{"se cret":"a"}\'', node('')].map(
      (command) => [command, 'did not write a JSON object whose members are names and values of headers'] as const,
    ),
  ])('F262: blocks the server if it fails, and keeps its output to itself: %s', async (command, reason) => {
    const { start, finish } = running(command);
    start();
    expect(await finish()).toEqual({ blocked: 'login_required', because: `\`headersCommand\` ${reason}` });
  });

  it('gets values as variables, which no shell runs', async () => {
    const proof = join(folder, 'ran');
    const token = `$(touch ${proof}); "; touch ${proof}; "`;
    const { start, finish } = running(node(`console.log(JSON.stringify({ token: process.env.TOKEN }))`), {
      TOKEN: token,
    });
    start();
    expect(await finish()).toEqual({ token });
    expect(existsSync(proof)).toBe(false);
  });

  it('may write 64 KiB', async () => {
    const { start, finish } = running(node(`console.log(JSON.stringify({ Key: 'k'.repeat(65536 - 11) }))`));
    start();
    expect(Object.values((await finish()) ?? {})).toEqual(['k'.repeat(65_536 - 11)]);
  });

  it('is ended if it writes more', async () => {
    const { start, finish } = running(node(`setInterval(() => process.stdout.write('secret'.repeat(20000)), 1)`));
    start();
    expect(await finish()).toMatchObject({ because: '`headersCommand` wrote more than 64 KiB' });
  });

  // A shell of Windows has no background.
  it.skipIf(IS_WINDOWS)(
    'does not wait for a process that it leaves behind with its output open, and ends it',
    async () => {
      const { start, finish } = running(`sh -c 'sleep 1000' "${folder}" & echo '{"Authorization":"Bearer s"}'`);
      start();
      expect(await finish()).toEqual({ authorization: 'Bearer s' });
    },
  );

  it.each([
    ['end at SIGTERM', ''],
    ['ignore SIGTERM', "trap '' TERM;"],
  ])('F262: is ended after 10 s with the processes that it has started, which %s', async (_, prefix) => {
    const { clock, start, finish } = running(
      `${prefix} sh -c '${prefix} sleep 1000; true' "${folder}" & ${node('setInterval(() => {}, 1e6)')}`,
    );
    start();
    await until('both run', () => processesWith(folder).length >= 2);
    clock.advance(9_999);
    expect(processesWith(folder).length).toBeGreaterThanOrEqual(2);
    clock.advance(1);
    expect(await finish()).toMatchObject({ because: '`headersCommand` did not end within 10 s' });
    expect(processesWith(folder)).toEqual([]);
  });

  it('is ended with its connection, and does not run again', async () => {
    const { access, start, finish } = running(node('setInterval(() => {}, 1e6)'));
    start();
    await until('it runs', () => processesWith(folder).length > 0);
    const ended = access.end();
    expect(await finish()).toMatchObject({ because: '`headersCommand` was ended with its connection' });
    await ended;
    expect(processesWith(folder)).toEqual([]);
    expect(await access.rejected({ status: 401, authenticate: [] }, {}, REQUEST)).toMatchObject({
      blocked: 'login_required',
    });
  });
});
