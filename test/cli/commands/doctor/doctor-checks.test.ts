import { describe, expect, it } from 'vitest';
import { checkStarts, type DoctorFacts } from '../../../../src/cli/commands/doctor/doctor-checks.js';
import { reportOf } from '../../../setup/doctor/doctor-home.js';

const SERVER = { key: 's', spec: { missing: undefined } };
const hub = { tools: async () => undefined };

const CONFIG = { file: '/c.yaml', servers: [SERVER], gateway: { callLog: 'off', views: [] } };

/** As if the configuration had one server and no client had Trunkline. */
function given(members: object): DoctorFacts {
  const facts = { servers: [SERVER], registrations: [], config: CONFIG };
  return { ...facts, machine: { platform: 'win32', env: {} }, hub: { ...hub, ...members } } as unknown as DoctorFacts;
}

describe('servers', () => {
  it('F123: are not started while a hub runs that does not answer, since they may still run', async () => {
    const servers = () => Promise.reject(new Error('asked'));
    expect((await checkStarts(given({ state: { kind: 'silent' }, servers }))).findings).toEqual([]);
  });

  it('F123: are not started after the end of a hub that was asked about them, since its clients start another one', async () => {
    const servers = () => Promise.reject(new Error('The hub ended before it answered.'));
    expect((await checkStarts(given({ state: { kind: 'running' }, servers }))).findings).toEqual([]);
  });

  it('are those of the hub if one runs, and only the chosen ones', async () => {
    const servers = async () => [reportOf(), reportOf({ server: 'other' })];
    expect((await checkStarts(given({ state: { kind: 'running' }, servers }))).findings).toMatchObject([
      { code: 'TL-SERVER-OK', sentence: expect.stringMatching(/^server `s`: ready/) },
    ]);
  });

  it('work if they became ready', async () => {
    const of = async (state: 'ready' | 'parked') => {
      const servers = async () => [reportOf({ state })];
      return [...(await checkStarts(given({ state: { kind: 'running' }, servers }))).working];
    };
    expect([await of('ready'), await of('parked')]).toEqual([['s'], []]);
  });
});
