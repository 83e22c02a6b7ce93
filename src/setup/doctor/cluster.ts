import type { Asked } from '../../extras/cluster/ask-gateway.js';
import type { ClusterView } from '../../extras/cluster/members.js';
import { someOf } from '../../wire/json/printable.js';
import { type Finding, finding } from './finding.js';

/** The settings of the cluster cannot be used, so no gateway was asked. */
interface Misconfigured {
  readonly kind: 'misconfigured';
  readonly fault: string;
}

/** Checks what the gateway on this machine knows about its cluster. `keyFile` is the file with the shared key. */
export function checkCluster(asked: Asked | Misconfigured, keyFile: string): Finding[] {
  switch (asked.kind) {
    case 'misconfigured':
      return [finding('TL-CLUSTER-SETTINGS', asked.fault)];
    case 'absent':
      return [
        finding(
          'TL-CLUSTER-SILENT',
          `no gateway of the cluster runs on this machine: nothing listens at ${asked.address}`,
        ),
      ];
    case 'other-key':
      return [
        finding('TL-CLUSTER-SILENT', `the gateway at ${asked.address} does not accept the key of ${keyFile}`, [], {
          remedy:
            'Restart the gateway if the file has changed since its start, or use the configuration of the gateway.',
        }),
      ];
    case 'silent':
      return [finding('TL-CLUSTER-SILENT', `the gateway at ${asked.address} does not answer`, [asked.because])];
    case 'answered': {
      const faults = checkView(asked.view);
      const count = asked.view.members.length;
      return faults.length > 0 ? faults : [finding('TL-CLUSTER-OK', `the cluster has ${gateways(count)}`)];
    }
  }
}

function checkView({ instance, members, storeFault, strangers }: ClusterView): Finding[] {
  const silent = members.filter(({ state }) => state === 'unreachable');
  const versions = [...new Set(members.map(({ version }) => version))].sort();
  const others = members.filter(
    ({ servers }) => servers !== members.find((each) => each.instance === instance)?.servers,
  );
  const names = silent.map(({ instance, address }) => `${instance} at ${address}`);
  return [
    ...(storeFault === undefined ? [] : [finding('TL-CLUSTER-STORE-AWAY', storeFault)]),
    ...(silent.length === 0
      ? []
      : [
          finding('TL-CLUSTER-UNREACHABLE', `${gateways(silent.length)} of the cluster cannot be reached`, [
            someOf(names),
          ]),
        ]),
    ...(versions.length < 2
      ? []
      : [finding('TL-CLUSTER-VERSIONS', `the gateways of the cluster have the versions ${versions.join(', ')}`)]),
    ...(others.length === 0
      ? []
      : [
          finding(
            'TL-CLUSTER-SERVERS',
            `${gateways(others.length)} of the cluster ha${others.length === 1 ? 's' : 've'} other servers than the one on this machine`,
            [someOf(others.map(({ instance: name, address }) => `${name} at ${address}`))],
          ),
        ]),
    ...(strangers === 0
      ? []
      : [
          finding(
            'TL-CLUSTER-KEYS',
            `${gateways(strangers)} with another key use${strangers === 1 ? 's' : ''} the store under the same name`,
          ),
        ]),
  ];
}

function gateways(count: number): string {
  return count === 1 ? 'one gateway' : `${count} gateways`;
}
