import { describe, expect, it } from 'vitest';
import type { Finding } from '../../src/doctor/finding.js';
import { checkServer } from '../../src/doctor/servers.js';
import type { Code } from '../../src/errors/codes.js';
import type { ServerReport } from '../../src/gateway/status/status.js';
import { failed, NOTHING, reportOf } from './doctor-home.js';

function seen(members: Partial<ServerReport>): readonly Finding[] {
  return checkServer({ report: reportOf(members) });
}

const BAD = { name: 's__x', reason: 'no name' };

const ROWS: readonly (readonly [what: string, code: Code, findings: () => readonly Finding[]])[] = [
  ['is well', 'TL-SERVER-OK', () => seen({})],
  ['is being installed', 'TL-SERVER-INSTALLING', () => seen({ state: 'installing' })],
  ['is starting', 'TL-SERVER-STARTING', () => seen({ state: 'starting' })],
  ['is stopped', 'TL-SERVER-STOPPED', () => seen({ state: 'stopped' })],
  [
    'is parked by a running hub',
    'TL-SERVER-PARKED',
    () => seen({ state: 'parked', problem: 'It is parked.', code: 'TL-SERVER-PARKED' }),
  ],
  [
    'is restarted by a running hub',
    'TL-SERVER-RESTARTING',
    () => seen({ state: 'backoff', problem: 'x', code: 'TL-SERVER-RESTARTING' }),
  ],
  [
    'is silent',
    'TL-SERVER-UNRESPONSIVE',
    () => seen({ state: 'suspect', problem: 'x', code: 'TL-SERVER-UNRESPONSIVE' }),
  ],
  ['has an open breaker', 'TL-SERVER-BREAKER-OPEN', () => seen({ problem: 'x', code: 'TL-SERVER-BREAKER-OPEN' })],
  ['could not be installed', 'TL-SERVER-NOT-INSTALLED', () => failed('x could not be installed: E404')],
  ['cannot be spawned', 'TL-SERVER-SPAWN', () => failed('Cannot start "x": not found (ENOENT)')],
  ['finds no descriptors', 'TL-SERVER-RESOURCES', () => failed('Cannot start "x": (EMFILE)')],
  ['answers nonsense', 'TL-SERVER-HANDSHAKE', () => failed('initialize: the answer is no object')],
  [
    'does not list its tools',
    'TL-SERVER-LISTS',
    () => {
      const report = reportOf({ tools: { ...NOTHING, failure: 'tools/list: it said no' } });
      return checkServer({ report, diagnosis: { reason: 'its tools cannot be listed', hint: 'look' } });
    },
  ],
  ['lacks a module', 'TL-SERVER-MODULE', () => failed('exited', ["Error: Cannot find module 'x'"])],
  ['lacks a Python module', 'TL-SERVER-MODULE', () => failed('exited', ["ModuleNotFoundError: No module named 'mcp'"])],
  ['needs ES modules', 'TL-SERVER-OLD-RUNTIME', () => failed('exited', ['Error [ERR_REQUIRE_ESM]: require() of ES'])],
  ['lacks a file', 'TL-SERVER-FILE', () => failed('exited', ["Error: ENOENT: no such file, open '/x'"])],
  ['may not open a file', 'TL-SERVER-FILE', () => failed('exited', ['bash: /x: Permission denied'])],
  ['has a wrong key', 'TL-SERVER-UNAUTHORIZED', () => failed('exited', ['HTTP 401 Unauthorized'])],
  ['reaches no host', 'TL-SERVER-NETWORK', () => failed('exited', ['connect ECONNREFUSED 127.0.0.1:5432'])],
  [
    'distrusts a host',
    'TL-SERVER-CERTIFICATE',
    () => failed('exited', ['self-signed certificate in certificate chain']),
  ],
  [
    'has a part for another Node',
    'TL-SERVER-NATIVE',
    () => failed('exited', ['was compiled against NODE_MODULE_VERSION 108']),
  ],
  ['has a full disk', 'TL-SERVER-RESOURCES', () => failed('exited', ['ENOSPC: no space left on device'])],
  ['prints on stdout', 'TL-SERVER-STDOUT', () => seen({ log: ['stdout (not-json): Welcome'], dropped: { junk: 1 } })],
  ['has malformed entries', 'TL-SERVER-QUARANTINED', () => seen({ tools: { ...NOTHING, quarantined: [BAD] } })],
  ['hides text', 'TL-SERVER-HIDDEN-TEXT', () => seen({ tools: { ...NOTHING, hiding: ['s__x'] } })],
  [
    'has a list that is cut',
    'TL-SERVER-TRUNCATED',
    () => seen({ tools: { ...NOTHING, truncated: 'more than 3 pages' } }),
  ],
  ['answers no ping', 'TL-SERVER-PING', () => checkServer({ report: reportOf(), ping: 'silent' })],
  ['refuses a ping', 'TL-SERVER-PING', () => checkServer({ report: reportOf(), ping: 'refused' })],
  ['has to be killed', 'TL-SERVER-LINGERS', () => checkServer({ report: reportOf(), endedBy: 'SIGKILL' })],
  [
    'left processes behind',
    'TL-SERVER-LEFTOVERS',
    () => checkServer({ report: reportOf(), endedBy: undefined, leftProcesses: 2 }),
  ],
  [
    'announces prompts that it does not list',
    'TL-SERVER-LIST-MISSING',
    () => seen({ prompts: { ...NOTHING, failure: 'prompts/list: it said no' } }),
  ],
  [
    'waits for approval',
    'TL-SERVER-APPROVAL',
    () =>
      seen({
        approval: { approved: 0, firstUse: false, fault: null },
        advice: '2 of its tools wait for approval. Run it.',
      }),
  ],
];

describe('a server that', () => {
  it.each(ROWS)('%s has the code %s', (_, code, findings) => {
    expect(findings().map((found) => found.code)).toContain(code);
    expect(findings().every(({ sentence }) => sentence.includes('`s`'))).toBe(true);
  });

  it('fails is reported with the phase and its output, and a hint', () => {
    expect(failed('exited', ['boom'])).toMatchObject([
      { evidence: ['phase: handshake', 'boom'], remedy: 'See its output.' },
    ]);
  });

  it('has a wrong entry in the configuration is not reported a second time', () => {
    expect(seen({ state: 'misconfigured', problem: 'x', code: 'TL-SERVER-MISCONFIGURED' })).not.toContainEqual(
      expect.objectContaining({ level: 'fail' }),
    );
  });
});

describe('a server that works', () => {
  it('has its revision, its era, and how that was found out', () => {
    const era = { name: 'legacy', foundBy: 'asked', cachedUntil: null } as const;
    expect(seen({ era })).toMatchObject([
      {
        code: 'TL-SERVER-OK',
        sentence: 'server `s`: ready, revision 2025-11-25 (legacy, it was asked when it started), 1 tool',
      },
    ]);
  });
});
