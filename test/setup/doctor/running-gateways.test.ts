import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hostIdentity, identify } from '../../../src/host/process/processes.js';
import type { ClientDescription } from '../../../src/hub/control.js';
import { checkSecretFiles } from '../../../src/setup/doctor/credentials.js';
import { repair } from '../../../src/setup/doctor/finding.js';
import { checkHub, checkRecentFaults, type ExaminedHub } from '../../../src/setup/doctor/hub.js';
import { checkRuns, checkServing } from '../../../src/setup/doctor/running-gateways.js';
import { home, useHome } from './doctor-home.js';

useHome();

function hub(state: ExaminedHub['state']): ExaminedHub {
  mkdirSync(home.path('hub'), { recursive: true });
  return { folder: home.path('hub'), faults: [], state, isAlive: async () => false };
}

const CLAUDE: ClientDescription = {
  ...{ name: 'claude', version: '1', pid: 8, since: '', uptimeSeconds: 1, inFlight: 0 },
  ...{ revision: '2025-11-25', trunkline: '2.0.0' },
};

/** The state of a hub that runs. */
function running(version: string, ...clients: ClientDescription[]): ExaminedHub['state'] {
  return { kind: 'running', hub: { pid: 7, version, clients } };
}

it('every process that serves is listed, and a gateway whose configuration file is gone is a warning', () => {
  const gone =
    'The hub (pid 7) runs on with /c/b.yaml, which does not exist any more: `trunkline stop --gateway 7` ends it.';
  const hub = { name: 'the hub (pid 7)', configuration: '/c/b.yaml (does not exist any more)', gone };
  const http = { name: 'the gateway over HTTP at http://localhost:1 (pid 8)', configuration: '/c/a.yaml' };
  expect(checkServing([hub, http])).toMatchObject([
    {
      ...{ level: 'ok', code: 'TL-RUN-OK', sentence: '2 processes of Trunkline serve' },
      evidence: [`${hub.name}, of ${hub.configuration}`, `${http.name}, of /c/a.yaml`],
    },
    { level: 'warn', code: 'TL-RUN-CONFIG-GONE', sentence: gone.slice(0, -1) },
  ]);
  expect(checkServing([])).toEqual([]);
});

describe('the hub', () => {
  it.each([
    [running('2.0.0', CLAUDE), 'TL-HUB-OK', /^hub 7 serves 1 client$/],
    [running('1.0.0', CLAUDE, CLAUDE), 'TL-HUB-VERSION', /with version 1\.0\.0; this is 2\.0\.0$/],
    [{ kind: 'refused' }, 'TL-HUB-VERSION', /does not take commands/],
    [{ kind: 'silent', pid: 7 }, 'TL-HUB-SILENT', /^the hub 7 does not answer$/],
  ] as const)('that is %j has the code %s', async (state, code, says) => {
    expect(await checkHub(hub(state), '2.0.0')).toMatchObject([{ code, sentence: expect.stringMatching(says) }]);
  });

  it('F180: that runs tells which revision each client opened with, and who has started another version of Trunkline', async () => {
    const { trunkline: _, ...early } = { ...CLAUDE, name: null, pid: 9, revision: null };
    expect(await checkHub(hub(running('2.0.0', CLAUDE, early)), '2.0.0')).toMatchObject([
      {
        code: 'TL-HUB-OK',
        evidence: [
          'claude (pid 8) opened with revision 2025-11-25, through Trunkline 2.0.0',
          'a client (pid 9) has not opened a session yet',
        ],
      },
    ]);
    const onMac = await checkHub(hub(running('2.0.0', CLAUDE)), '2.0.0', 'darwin');
    expect(onMac[0]?.evidence.at(-1)).toMatch(/^its servers may read the folders and /);
    const old = { ...CLAUDE, pid: 10, revision: '2026-07-28', trunkline: '1.0.0' };
    expect(await checkHub(hub(running('2.0.0', CLAUDE, old)), '2.0.0')).toMatchObject([
      {
        code: 'TL-HUB-CLIENT-VERSION',
        sentence: '1 client of hub 7 started another version than 2.0.0',
        evidence: ['claude (pid 10) opened with revision 2026-07-28, through Trunkline 1.0.0'],
      },
    ]);
  });

  it('without a folder cannot run', async () => {
    const absent = { ...hub({ kind: 'not running' }), folder: undefined };
    const faults = ['x is a symbolic link'];
    expect(await checkHub({ ...absent, faults }, '2.0.0')).toMatchObject([{ code: 'TL-HUB-FOLDER' }]);
    expect(await checkHub(absent, '2.0.0')).toEqual([]);
  });

  it('F125: that was killed leaves a socket, which `--fix` removes; one that was stopped leaves nothing to do', async () => {
    const socket = home.write('hub/1/s', '');
    home.write('hub/2/s', '');
    home.write('hub/2/ended', '');
    const findings = await checkHub(hub({ kind: 'not running' }), '2.0.0');
    expect(findings).toMatchObject([{ code: 'TL-HUB-STALE', evidence: [socket] }]);
    expect(await repair(findings)).toMatchObject([{ level: 'ok' }, { code: 'TL-FIX-DONE' }]);
    expect(existsSync(socket)).toBe(false);
    expect(existsSync(home.path('hub/2/s'))).toBe(true);
  });

  it('that runs keeps its socket', async () => {
    home.write('hub/1/s', '');
    expect(await checkHub(hub(running('2.0.0', CLAUDE)), '2.0.0')).toMatchObject([{ code: 'TL-HUB-OK' }]);
  });

  it('has faults of the last day in its log, and notices that are none', async () => {
    const now = Date.UTC(2026, 0, 2);
    const record = (level: number, time: number, msg: string, more = {}) =>
      JSON.stringify({ level, time, msg, ...more });
    const lines = [
      record(50, now - 2 * 86_400_000, 'old'),
      record(30, now, 'fine'),
      record(40, now - 1_000, 'server parked', { server: 'files', reason: 'exited' }),
      record(40, now, 'approved the first tools of this server', { server: 'files', tools: ['read'] }),
      record(40, now, 'timeout is longer than maxTimeout'),
      record(50, now, 'the configuration has mistakes'),
    ];
    const file = home.write('hub.log', `${lines.join('\n')}\n`);
    const findings = await checkRecentFaults(file, now);
    expect(findings).toMatchObject([
      {
        code: 'TL-RECENT-FAULTS',
        sentence: 'the log of the hub has 2 faults of the last 24 hours',
        evidence: [expect.stringMatching(/server parked/), expect.stringMatching(/has mistakes$/)],
      },
    ]);
    expect(await checkRecentFaults(home.path('none.log'), now)).toEqual([]);
  });
});

describe('a Trunkline that was killed', () => {
  const GONE = { pid: 4_194_000, startTime: '1' };
  const write = (name: string, groups: object[], gateway: object = GONE) => {
    return home.write(`run/${name}.json`, JSON.stringify({ host: hostIdentity(), gateway, groups }), 0o600);
  };

  it('leaves a run file, which `--fix` removes', async () => {
    const file = write('a', [GONE]);
    const findings = await checkRuns(home.path('run'), async () => {});
    expect(findings).toMatchObject([{ code: 'TL-RUN-STALE', evidence: [file] }]);
    await repair(findings);
    expect(existsSync(file)).toBe(false);
  });

  it('F125: leaves servers, which `--fix` ends', async () => {
    const orphan = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { detached: true, stdio: 'ignore' });
    try {
      const { pid = 0 } = orphan;
      write('b', [{ pid, startTime: (await identify(pid))?.startTime }]);
      let swept = 0;
      const sweep = async () => {
        swept += 1;
      };
      const findings = await checkRuns(home.path('run'), sweep);
      expect(findings).toMatchObject([{ code: 'TL-RUN-ORPHANS', evidence: [`pids ${pid}`, expect.any(String)] }]);
      await repair(findings);
      expect(swept).toBe(1);
    } finally {
      orphan.kill('SIGKILL');
    }
  });

  it('is not one that runs', async () => {
    const own = { pid: process.pid, startTime: (await identify(process.pid))?.startTime };
    write('c', [GONE], own);
    expect(await checkRuns(home.path('run'), async () => {})).toEqual([]);
  });

  it('loses no file to a look, however old and damaged', async () => {
    const file = home.write('run/old.json', 'nonsense', 0o600);
    const { utimesSync } = await import('node:fs');
    utimesSync(file, 1, 1);
    await checkRuns(home.path('run'), async () => {});
    expect(existsSync(file)).toBe(true);
  });
});

describe('the token file', () => {
  it('with something else in it has its code', async () => {
    const tokenFile = home.write('token', 'short', 0o600);
    const findings = await checkSecretFiles({ tokenFile, sealFile: home.path('none') }, home.machine());
    expect(findings).toMatchObject([{ code: 'TL-TOKEN-MALFORMED' }]);
    expect(
      await checkSecretFiles({ tokenFile: home.path('none'), sealFile: home.path('none') }, home.machine()),
    ).toEqual([]);
  });
});
