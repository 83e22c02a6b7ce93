import { describe, expect, it } from 'vitest';
import { CODES, type Code } from '../../../src/host/errors/codes.js';
import type { Finding } from '../../../src/setup/doctor/finding.js';
import { checkServer } from '../../../src/setup/doctor/servers.js';
import { WITHHELD_BECAUSE } from '../../../src/spec/tool-approvals.js';
import type { ServerReport } from '../../../src/status/status.js';
import { faultOf } from '../../../src/status/verdict.js';
import { NOTHING } from '../../status/reporting.js';
import { failed, reportOf } from './doctor-home.js';

function seen(members: Partial<ServerReport>): readonly Finding[] {
  return checkServer({ report: reportOf(members) });
}

const BAD = { name: 's__x', reason: 'no name' };

function reports(what: string, code: Code, findings: () => readonly Finding[]): void {
  it(`${what} has the code ${code}`, () => {
    expect(findings().map((found) => found.code)).toContain(code);
    expect(findings().every(({ sentence }) => sentence.includes('`s`'))).toBe(true);
  });
}

describe('a server that', () => {
  reports('is well', 'TL-SERVER-OK', () => seen({}));
  const instance = { state: 'ready', clients: 1, inFlight: 0, restarts: 0, isYours: false, memoryBytes: 1e6 } as const;
  reports('is unknown and runs several processes', 'TL-SERVER-SHARING', () =>
    seen({
      sharing: { mode: 'isolated', rule: 'unknown', because: 'x' },
      instances: [1, 2].map((pid) => ({ ...instance, id: String(pid), pid })),
    }),
  );
  reports('is asked in plain text', 'TL-SERVER-INSECURE', () => seen({ remote: true, insecure: true }));
  const allowed = { ...NOTHING, denied: ['s__a'] };
  reports('lists nothing', 'TL-SERVER-EMPTY', () => seen({ tools: NOTHING }));
  it.each([
    ['lists a prompt', { tools: NOTHING, prompts: { ...NOTHING, exposed: ['s__p'] } }],
    ['has tools that the configuration denies', { tools: allowed }],
    ['gives a list that cannot be read', { tools: NOTHING, prompts: { ...NOTHING, failure: 'no list' } }],
  ])('%s is not said to offer nothing', (_, members) => {
    expect(seen(members).map(({ code }) => code)).not.toContain('TL-SERVER-EMPTY');
  });
  reports('is being installed', 'TL-SERVER-INSTALLING', () => seen({ state: 'installing' }));
  reports('is starting', 'TL-SERVER-STARTING', () => seen({ state: 'starting' }));
  reports('is stopped', 'TL-SERVER-STOPPED', () => seen({ state: 'stopped' }));
  reports('is parked by a running hub', 'TL-SERVER-PARKED', () =>
    seen({ state: 'parked', problem: 'It is parked.', code: 'TL-SERVER-PARKED' }),
  );
  reports('is restarted by a running hub', 'TL-SERVER-RESTARTING', () =>
    seen({ state: 'backoff', problem: 'x', code: 'TL-SERVER-RESTARTING' }),
  );
  reports('is silent', 'TL-SERVER-UNRESPONSIVE', () =>
    seen({ state: 'suspect', problem: 'x', code: 'TL-SERVER-UNRESPONSIVE' }),
  );
  reports('has an open breaker', 'TL-SERVER-BREAKER-OPEN', () =>
    seen({ problem: 'x', code: 'TL-SERVER-BREAKER-OPEN' }),
  );
  reports('could not be installed', 'TL-SERVER-NOT-INSTALLED', () => failed('x could not be installed: E404'));
  reports('cannot be spawned', 'TL-SERVER-SPAWN', () => failed('Cannot start "x": not found (ENOENT)'));
  reports('finds no descriptors', 'TL-SERVER-RESOURCES', () => failed('Cannot start "x": (EMFILE)'));
  const refused = 'connect ECONNREFUSED 192.0.2.1:443 (ECONNREFUSED)';
  for (const [what, state, code] of [
    ['cannot be reached', 'offline', 'TL-SERVER-UNREACHABLE'],
    ['refuses the credentials', 'blocked', 'TL-SERVER-LOGIN'],
    ['answers from behind a URL with nonsense', 'backoff', 'TL-SERVER-HANDSHAKE'],
  ] as const) {
    reports(what, code, () => {
      const report = reportOf({ remote: true, state, problem: 'x', lastFailure: refused });
      return checkServer({ report, fault: faultOf(report) });
    });
  }
  reports('answers nonsense', 'TL-SERVER-HANDSHAKE', () => failed('initialize: the answer is no object'));
  reports('does not list its tools', 'TL-SERVER-LISTS', () => {
    const report = reportOf({ tools: { ...NOTHING, failure: 'tools/list: it said no' } });
    return checkServer({ report, fault: faultOf(report) });
  });
  reports('lacks a module', 'TL-SERVER-MODULE', () => failed('exited', ["Error: Cannot find module 'x'"]));
  reports('lacks a Python module', 'TL-SERVER-MODULE', () =>
    failed('exited', ["ModuleNotFoundError: No module named 'mcp'"]),
  );
  reports('needs ES modules', 'TL-SERVER-OLD-RUNTIME', () =>
    failed('exited', ['Error [ERR_REQUIRE_ESM]: require() of ES']),
  );
  reports('lacks a file', 'TL-SERVER-FILE', () => failed('exited', ["Error: ENOENT: no such file, open '/x'"]));
  reports('may not open a file', 'TL-SERVER-FILE', () => failed('exited', ['bash: /x: Permission denied']));
  reports('may not open a folder on macOS', 'TL-SERVER-FILE', () =>
    failed('exited', ['ls: Documents: Operation not permitted']),
  );
  reports('has a wrong key', 'TL-SERVER-UNAUTHORIZED', () => failed('exited', ['HTTP 401 Unauthorized']));
  reports('reaches no host', 'TL-SERVER-NETWORK', () => failed('exited', ['connect ECONNREFUSED 127.0.0.1:5432']));
  reports('distrusts a host', 'TL-SERVER-CERTIFICATE', () =>
    failed('exited', ['self-signed certificate in certificate chain']),
  );
  reports('has a part for another Node', 'TL-SERVER-NATIVE', () =>
    failed('exited', ['was compiled against NODE_MODULE_VERSION 108']),
  );
  reports('has a full disk', 'TL-SERVER-RESOURCES', () => failed('exited', ['ENOSPC: no space left on device']));
  reports('prints on stdout', 'TL-SERVER-STDOUT', () =>
    seen({ log: ['stdout (not-json): Welcome'], dropped: { junk: 1 } }),
  );
  reports('has malformed entries', 'TL-SERVER-QUARANTINED', () => seen({ tools: { ...NOTHING, quarantined: [BAD] } }));
  reports('hides text', 'TL-SERVER-HIDDEN-TEXT', () => seen({ tools: { ...NOTHING, hiding: ['s__x'] } }));
  reports('has a list that is cut', 'TL-SERVER-TRUNCATED', () =>
    seen({ tools: { ...NOTHING, truncated: 'more than 3 pages' } }),
  );
  reports('answers no ping', 'TL-SERVER-PING', () => checkServer({ report: reportOf(), ping: 'silent' }));
  reports('refuses a ping', 'TL-SERVER-PING', () => checkServer({ report: reportOf(), ping: 'refused' }));
  reports('has to be killed', 'TL-SERVER-LINGERS', () => checkServer({ report: reportOf(), endedBy: 'SIGKILL' }));
  reports('left processes behind', 'TL-SERVER-LEFTOVERS', () =>
    checkServer({ report: reportOf(), endedBy: undefined, leftProcesses: 2 }),
  );
  reports('announces prompts that it does not list', 'TL-SERVER-LIST-MISSING', () =>
    seen({ prompts: { ...NOTHING, failure: 'prompts/list: it said no' } }),
  );
  reports('waits for approval', 'TL-SERVER-APPROVAL', () =>
    seen({
      approval: { approved: 0, firstUse: false, fault: null },
      tools: { ...NOTHING, quarantined: [{ name: 'read', reason: WITHHELD_BECAUSE.new }] },
    }),
  );

  it('fails is reported with the phase and its output, and a hint', () => {
    expect(failed('exited', ['boom'])).toMatchObject([
      { evidence: ['phase: handshake', 'boom'], remedy: CODES['TL-SERVER-EXITED'].remedy },
    ]);
  });

  it('has a wrong entry in the configuration is not reported a second time', () => {
    expect(seen({ state: 'misconfigured', problem: 'x', code: 'TL-SERVER-MISCONFIGURED' })).not.toContainEqual(
      expect.objectContaining({ level: 'fail' }),
    );
  });

  it('cannot run for a user is a warning with the command, whatever its output looks like', () => {
    const report = { problem: 'It cannot run for some users: x.', advice: 'Run y.', log: ['401 unauthorized'] };
    expect(seen({ ...report, code: 'TL-VAR-USER' })).toMatchObject([
      {
        code: 'TL-VAR-USER',
        level: 'warn',
        sentence: 'server `s`: It cannot run for some users: x.',
        remedy: 'Run y.',
      },
    ]);
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
