import { describe, expect, it } from 'vitest';
import type { Code } from '../../../src/host/errors/codes.js';
import type { Confinement } from '../../../src/servers/sandbox/find-bubblewrap.js';
import { checkConfinement } from '../../../src/setup/doctor/machine.js';
import { checkServer } from '../../../src/setup/doctor/servers.js';
import type { ChildSpec } from '../../../src/spec/server-spec.js';
import { reportOf } from './doctor-home.js';

const NOTHING = { server: 'a', read: [], write: [], network: [] as string[], unixSockets: false, opensFolder: false };
const spec = (key: string, sandbox: ChildSpec['sandbox']) => ({ key, command: 'node', sandbox }) as ChildSpec;
const available: Confinement = { isAvailable: true, program: '/usr/bin/bwrap' };

async function codesOf(programs: readonly ChildSpec[], found: Confinement): Promise<readonly Code[]> {
  return (await checkConfinement(programs, async () => found)).map(({ code }) => code);
}

describe('the check of confined servers', () => {
  it('tries nothing if no server is confined', async () => {
    const untried = () => Promise.reject(new Error('tried'));
    expect(await checkConfinement([spec('a', undefined)], untried)).toEqual([]);
  });

  it('says that they can be confined, and which of them have a Node that ignores the proxy', async () => {
    expect(await codesOf([spec('a', NOTHING)], available)).toEqual(['TL-SANDBOX-OK']);
    const networked = { ...spec('a', { ...NOTHING, network: ['a.example'] }), command: '/opt/python' };
    expect(await codesOf([networked], available)).toEqual(['TL-SANDBOX-OK']);
    const codes = await codesOf([{ ...networked, command: 'node' }], available);
    // The Node of the tests may be old or new.
    const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
    const isNew = major >= 24 || (major === 22 && minor >= 21);
    expect(codes).toEqual(isNew ? ['TL-SANDBOX-OK'] : ['TL-SANDBOX-OK', 'TL-SANDBOX-PROXY']);
  });

  it.each<Code>(['TL-SANDBOX-MISSING', 'TL-SANDBOX-FORBIDDEN', 'TL-SANDBOX-UNSUPPORTED'])(
    'names the servers that do not start, and the remedy: %s',
    async (code) => {
      const fault = { code, reason: 'it is so', remedy: 'do this' };
      const [found] = await checkConfinement([spec('a', NOTHING), spec('b', undefined)], async () => {
        return { isAvailable: false, fault };
      });
      expect(found).toMatchObject({ code, level: 'fail', remedy: 'Do this.' });
      expect(found?.sentence).toContain('it is so');
      expect(found?.evidence).toEqual(['servers that do not start: a']);
    },
  );

  it('reports a server that was not started, because its entry opens too much', () => {
    const reason = '`write` opens /home/ann, which has files of Trunkline itself';
    const report = reportOf({
      ...{ state: 'backoff', code: 'TL-SANDBOX-ENTRY', problem: `It does not run: ${reason}.`, advice: 'Wait.' },
      lastFailure: `${reason} (TL-SANDBOX-ENTRY)`,
    });
    expect(checkServer({ report })[0]).toMatchObject({ code: 'TL-SANDBOX-ENTRY', level: 'fail' });
  });

  it('reports connections that were refused, with the line that would allow them', () => {
    const remark =
      'The sandbox refused the server a connection to a.example; `sandbox: { network: [a.example] }` allows it.';
    const found = checkServer({ report: reportOf({ sandbox: { remarks: [remark] } }) });
    expect(found.map(({ code }) => code)).toEqual(['TL-SERVER-OK', 'TL-SANDBOX-REFUSED']);
    expect(found[1]?.evidence).toEqual([remark]);
  });
});
