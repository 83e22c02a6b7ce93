import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Code } from '../../../src/host/errors/codes.js';
import { desktopPath, shellPath } from '../../../src/setup/doctor/commands.js';
import { type Finding, finding, repair, runChecks } from '../../../src/setup/doctor/finding.js';
import {
  checkFolders,
  checkLimits,
  checkNetwork,
  checkNode,
  checkNpm,
  diskFindings,
  readLimits,
} from '../../../src/setup/doctor/machine.js';
import { HAS_MODES, IS_WINDOWS } from '../../support/platform.js';
import { home, useHome } from './doctor-home.js';

useHome();

const node = { version: '22.4.0', path: '/usr/bin/node', isElectron: false };
const npm = '/usr/lib/npm-cli.js';
const LAUNCHCTL = join(import.meta.dirname, '../../../scripts/macos/stand-ins/launchctl');

type Make = () => readonly Finding[] | Promise<readonly Finding[]>;

/** Makes what the title says, and expects one finding with this code and sentence. */
function reports(code: Code, says: RegExp, make: Make): void {
  it(`is reported with ${code}: ${says.source}`, async () => {
    const findings = await make();
    expect(findings.filter((found) => found.code === code).map(({ sentence }) => sentence)).toEqual([
      expect.stringMatching(says),
    ]);
  });
}

describe('the machine', () => {
  reports('TL-NODE-OK', /Node 22\.4\.0 fits/, () => checkNode({ node }));
  reports('TL-NODE-ELECTRON', /is a part of a desktop program/, () =>
    checkNode({ node: { ...node, isElectron: true } }),
  );
  reports('TL-NPM-OK', /reaches its registry/, () => checkNpm({ isOffline: false }, npm, true, async () => []));
  reports('TL-NPM-MISSING', /no npm next to/, () => checkNpm({ isOffline: true }, undefined, true, async () => []));
  reports('TL-NPM-UNREACHABLE', /does not reach/, () =>
    checkNpm({ isOffline: false }, npm, true, async () => ['npm error code ENOTFOUND']),
  );
  reports('TL-DIR-OK', /can be used/, () =>
    checkFolders(home.machine(), { data: home.path('data/none/yet'), others: [] }),
  );
  reports('TL-DIR-FOREIGN', /belongs to the user with the id/, () =>
    checkFolders(home.machine({ uid: 4_321_987 }), { data: home.folder, others: [] }),
  );
  if (HAS_MODES)
    reports('TL-DIR-EXPOSED', /other users can write into/, () => {
      mkdirSync(home.path('open'));
      chmodSync(home.path('open'), 0o777);
      return checkFolders(home.machine(), { data: home.path('open'), others: [] });
    });
  reports('TL-DISK-LOW', /^100 MB are free$/, () => diskFindings({ folder: '/d', freeBytes: 100 << 20, type: 0 }));
  reports('TL-HOME-NETWORK', /\(NFS\)/, () => diskFindings({ folder: '/d', freeBytes: 2 ** 40, type: 0x6969 }));
  reports('TL-HOME-SYNCED', /OneDrive/, () =>
    checkFolders(home.machine({ platform: 'win32' }), { data: home.path('OneDrive/AppData'), others: [] }),
  );
  reports('TL-LIMIT-FILES', /256 open files are allowed; 10 servers may need 576/, () =>
    checkLimits({ openFiles: 256 }, 10),
  );
  reports('TL-LIMIT-PROCESSES', /300 processes are allowed; 416/, () => checkLimits({ processes: 300 }, 10));
  reports('TL-LIMIT-WATCHES', /only 100 files/, () => checkLimits({ watches: 100 }, 10));
  reports('TL-PROXY-MALFORMED', /^HTTP_PROXY is not a URL$/, () =>
    checkNetwork({ platform: 'linux', env: { HTTP_PROXY: 'proxy:8080', NO_PROXY: 'localhost' } }),
  );
  reports('TL-FIX-DONE', /^TL-RUN-STALE: removed it$/, () =>
    repair([finding('TL-RUN-STALE', 'x', [], { repair: { done: 'removed it', apply: async () => {} } })]),
  );
  reports('TL-FIX-FAILED', /^TL-RUN-STALE could not be mended$/, () =>
    repair([
      finding('TL-RUN-STALE', 'x', [], {
        repair: { done: 'removed it', apply: () => Promise.reject(new Error('no')) },
      }),
    ]),
  );

  it('has limits that are enough for a few servers, where they are known', async () => {
    expect(checkLimits({}, 100)).toEqual([]);
    expect(typeof (await readLimits()).openFiles).toBe(process.platform === 'linux' ? 'number' : 'undefined');
  });

  it('asks the registry neither offline nor without packages', async () => {
    const ping = () => Promise.reject(new Error('must not be asked'));
    expect(await checkNpm({ isOffline: true }, npm, true, ping)).toMatchObject([{ code: 'TL-NPM-OK' }]);
    expect(await checkNpm({ isOffline: false }, npm, false, ping)).toMatchObject([{ code: 'TL-NPM-OK' }]);
  });

  it('exempts itself from a proxy in several ways', () => {
    for (const NO_PROXY of ['localhost', 'intern, 127.0.0.1', '*', '::1']) {
      expect(checkNetwork({ platform: 'linux', env: { HTTPS_PROXY: 'http://p:1', NO_PROXY } })).toEqual([]);
    }
  });
});

describe('the PATH', () => {
  // A Windows script cannot play a shell.
  it.skipIf(IS_WINDOWS)('of the shell is read although its profile prints', async () => {
    const shell = home.executable('sh', '#!/bin/sh\necho Welcome\nPATH=/one:/two\nshift\neval "$1"\n');
    const asked = { platform: 'linux', env: { SHELL: shell }, home: home.folder } as const;
    expect(await shellPath(asked)).toBe('/one:/two');
  });

  it('of a shell that cannot be started is not known', async () => {
    const asked = { platform: 'linux', env: { SHELL: home.path('none') }, home: home.folder } as const;
    expect(await shellPath(asked)).toBeUndefined();
    expect(await shellPath({ ...asked, env: {} })).toBeUndefined();
  });

  it('of the desktop of macOS is that of the Dock, which does not read /etc/paths', async () => {
    const asked = { platform: 'darwin', env: { PATH: join('/none') }, home: home.folder } as const;
    expect(await desktopPath(asked, home.path('none'))).toBe('/usr/bin:/bin:/usr/sbin:/sbin');
  });

  // Windows runs no scripts of a shell.
  it.skipIf(IS_WINDOWS)('of the desktop of macOS is that of the session, if one was set there', async () => {
    const asked = { platform: 'darwin', env: { PATH: join('/none') }, home: home.folder } as const;
    const launchctl = home.executable('launchctl', readFileSync(LAUNCHCTL, 'utf8'));
    expect(await desktopPath(asked, launchctl)).toBe('/usr/bin:/bin:/usr/sbin:/sbin');
    execFileSync(launchctl, ['setenv', 'PATH', '/opt/homebrew/bin:/usr/bin']);
    expect(await desktopPath(asked, launchctl)).toBe('/opt/homebrew/bin:/usr/bin');
  });

  it('of the desktop has folders of the system', async () => {
    expect(await desktopPath({ platform: 'linux', env: { PATH: join('/none') }, home: home.folder })).toContain(
      '/usr/bin',
    );
  });
});

describe('checks', () => {
  it('F124: that hang or have a bug keep none of the others from being told', async () => {
    const checks = {
      waiting: () => new Promise<never>(() => {}),
      nothing: () => {
        throw new Error('a bug');
      },
      'the rest': () => [finding('TL-NODE-OLD', 'it is old')],
    };
    const found = await runChecks(checks, 1);
    expect(found.map(({ code, sentence }) => [code, sentence])).toEqual([
      ['TL-DOCTOR-TIMEOUT', expect.stringContaining('the check of waiting did not end within 0.001 s')],
      ['TL-DOCTOR-FAILED', expect.stringContaining('the check of nothing failed')],
      ['TL-NODE-OLD', 'it is old'],
    ]);
  });
});
