import { describe, expect, it } from 'vitest';
import type { ClusterView } from '../../../src/extras/cluster/members.js';
import { checkCluster } from '../../../src/setup/doctor/cluster.js';

type Member = ClusterView['members'][number];

const member = (instance: string, more: Partial<Member> = {}): Member => ({
  ...{ instance, address: `${instance}:7412`, version: '1.0.0', state: 'ready', load: 0, servers: 'same' },
  ...more,
});

const told = (asked: Parameters<typeof checkCluster>[0]) =>
  checkCluster(asked, '/key').map(({ code, sentence, evidence }) => ({
    code,
    text: [sentence, ...evidence].join(' | '),
  }));

describe('the check of the cluster', () => {
  it.each([
    ['nothing wrong', {}, 'TL-CLUSTER-OK', 'the cluster has 2 gateways'],
    [
      'nothing wrong with a draining gateway',
      { members: [member('a', { state: 'draining' })] },
      ...['TL-CLUSTER-OK', 'the cluster has one gateway'],
    ],
    ['a store that is away', { storeFault: 'no answer' }, 'TL-CLUSTER-STORE-AWAY', 'no answer'],
    [
      'a gateway that does not answer',
      { members: [member('a'), member('b', { state: 'unreachable' })] },
      ...['TL-CLUSTER-UNREACHABLE', 'one gateway of the cluster cannot be reached | b at b:7412'],
    ],
    [
      'an update that is not finished',
      { members: [member('a', { version: '1.1.0' }), member('b'), member('c')] },
      ...['TL-CLUSTER-VERSIONS', 'the gateways of the cluster have the versions 1.0.0, 1.1.0'],
    ],
    [
      'gateways with other servers',
      { members: [member('a'), member('b', { servers: 'other' }), member('c', { servers: 'third' })] },
      ...[
        'TL-CLUSTER-SERVERS',
        '2 gateways of the cluster have other servers than the one on this machine | b at b:7412, c at c:7412',
      ],
    ],
    [
      'gateways with another key',
      { strangers: 2 },
      ...['TL-CLUSTER-KEYS', '2 gateways with another key use the store under the same name'],
    ],
  ] as [string, Partial<ClusterView>, string, string][])('finds %s', (_, view, code, text) => {
    const whole = { instance: 'a', members: [member('a'), member('b')], strangers: 0, ...view };
    expect(told({ kind: 'answered', view: whole })).toEqual([{ code, text }]);
  });

  it.each([
    [{ kind: 'absent' }, 'no gateway of the cluster runs on this machine: nothing listens at here:1'],
    [{ kind: 'other-key' }, 'the gateway at here:1 does not accept the key of /key'],
    [{ kind: 'silent', because: 'no answer' }, 'the gateway at here:1 does not answer | no answer'],
  ] as const)('says why the gateway of this machine has told nothing: %j', (asked, text) => {
    expect(told({ address: 'here:1', ...asked })).toEqual([{ code: 'TL-CLUSTER-SILENT', text }]);
  });

  it('says which setting cannot be used', () => {
    expect(told({ kind: 'misconfigured', fault: 'no POD_IP' })).toEqual([
      { code: 'TL-CLUSTER-SETTINGS', text: 'no POD_IP' },
    ]);
  });
});
