// The units of systemd: what they start, which files that has, and how it ends. `systemd.system.test.ts` lets systemd check them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readServing, readTransports } from '../../src/cli/commands/serve/serve-options.js';
import { checkFile } from '../../src/config/file/check-file.js';
import { readSealKeys } from '../../src/state/seal.js';
import { dataFolder } from '../../src/state/user-files.js';

const ROOT = join(import.meta.dirname, '../..');
const SYSTEMD = join(ROOT, 'deploy/systemd');
const UNITS = { system: join(SYSTEMD, 'trunkline.service'), user: join(SYSTEMD, 'user/trunkline.service') };
const CONFIG = readFileSync(join(SYSTEMD, 'trunkline.yaml'), 'utf8');
/** Time after the drain, in which the servers end. */
const RESERVE_S = 10;

/** The values of each directive, in the order of the file. Lines with `#` are comments. */
function readUnit(file: string): ReadonlyMap<string, readonly string[]> {
  const directives = new Map<string, string[]>();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [, name, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) directives.set(name, [...(directives.get(name) ?? []), value]);
    else expect(line).toMatch(/^(?:#.*|\[(?:Unit|Service|Install)\]|)$/);
  }
  return directives;
}

const system = readUnit(UNITS.system);
const only = (unit: typeof system, name: string) => {
  const values = unit.get(name) ?? [];
  expect([name, values.length]).toEqual([name, 1]);
  return values[0] ?? '';
};
const environment = Object.fromEntries(
  (system.get('Environment') ?? [])
    .flatMap((line) => line.split(' '))
    .map((each) => each.split('=') as [string, string]),
);
const STATE = `/var/lib/${only(system, 'StateDirectory')}`;
const CREDENTIALS = '/run/credentials/trunkline.service';

describe.each(Object.entries(UNITS))('the unit of the %s', (_, file) => {
  const unit = readUnit(file);

  it('starts a gateway over HTTP on loopback', () => {
    const [program, ...args] = only(unit, 'ExecStart').split(' ');
    const line = readServing(args);
    expect([program, line?.command]).toEqual(['trunkline', 'serve']);
    expect(readTransports(line?.values ?? {})).toMatchObject({ stdio: false, http: { noAuth: false, port: 7411 } });
    expect(['localhost', '127.0.0.1']).toContain(readTransports(line?.values ?? {}).http?.host);
  });

  it('lets the gateway finish its calls, and end its servers itself', () => {
    const { drainMs } = checkFile(CONFIG, 'trunkline.yaml').gateway;
    expect(Number(only(unit, 'TimeoutStopSec'))).toBeGreaterThanOrEqual(drainMs / 1_000 + RESERVE_S);
    // The other modes send SIGTERM to the servers, too.
    expect([only(unit, 'KillMode'), only(unit, 'OOMPolicy')]).toEqual(['mixed', 'continue']);
  });

  it('tries no mistake of the configuration again', () => {
    expect([only(unit, 'Restart'), only(unit, 'RestartPreventExitStatus')]).toEqual(['on-failure', '2']);
  });
});

describe('the unit of the system', () => {
  it('gives the gateway the keys that its configuration names, and no path to the originals', async () => {
    const { secretFolder = '', sealKeyFile = '' } = checkFile(CONFIG, 'trunkline.yaml').gateway;
    const credentials = (system.get('LoadCredential') ?? []).map((each) => each.split(':')[0]);
    expect([secretFolder, credentials]).toEqual([CREDENTIALS, ['seal-key']]);
    expect(sealKeyFile).toBe(`${CREDENTIALS}/seal-key`);
    // systemd makes a file of root that the account may read by its group, or one of the account.
    for (const mode of [0o440, 0o400]) {
      const folder = mkdtempSync(join(tmpdir(), 'trunkline-credentials-'));
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
      writeFileSync(join(folder, 'seal-key'), 'k'.repeat(44), { mode });
      expect(await readSealKeys(join(folder, 'seal-key'), folder)).toEqual(['k'.repeat(44)]);
    }
  });

  it('has its data, and the variables of users, where the service may write', () => {
    const { auth } = checkFile(CONFIG, 'trunkline.yaml').gateway.http;
    const data = dataFolder({ env: environment, home: environment.HOME ?? '', platform: 'linux' });
    expect([only(system, 'ProtectSystem'), data, environment.HOME, only(system, 'WorkingDirectory')]).toEqual([
      'strict',
      ...[STATE, STATE, STATE],
    ]);
    expect(dirname(auth?.variables ?? '')).toBe(STATE);
    expect(dirname(auth?.tokens ?? '')).toBe(dirname(environment.TRUNKLINE_CONFIG ?? ''));
    // The account has the folder as its home in the database of users, too, where the sockets of a gateway are.
    expect(readFileSync(join(ROOT, 'docs/http.md'), 'utf8')).toContain(
      `useradd --system --home-dir ${STATE} --shell /usr/sbin/nologin ${only(system, 'User')}`,
    );
  });
});
