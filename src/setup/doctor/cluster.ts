import type { Asked } from '../../extras/cluster/ask-gateway.js';
import type { ClusterView } from '../../extras/cluster/members.js';
import { someOf } from '../../wire/json/printable.js';
import { type Finding, finding } from './finding.js';

/** The settings of the cluster cannot be used, so no gateway was asked. */
interface Misconfigured {
  readonly kind: 'misconfigured';
  readonly fault: string;
}

/** Checks the view that the gateway on this machine has of its cluster. `keyFile` is the file with the shared key. */
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
  const found: Finding[] = [];
  const namesOf = (some: typeof members) => [someOf(some.map((each) => `${each.instance} at ${each.address}`))];
  if (storeFault !== undefined) found.push(finding('TL-CLUSTER-STORE-AWAY', storeFault));
  const silent = members.filter(({ state }) => state === 'unreachable');
  if (silent.length > 0) {
    const text = `${gateways(silent.length)} of the cluster cannot be reached`;
    found.push(finding('TL-CLUSTER-UNREACHABLE', text, namesOf(silent)));
  }
  const versions = [...new Set(members.map(({ version }) => version))].sort();
  if (versions.length > 1) {
    const text = `the gateways of the cluster have the versions ${versions.join(', ')}`;
    found.push(finding('TL-CLUSTER-VERSIONS', text));
  }
  const own = members.find((each) => each.instance === instance);
  const others = members.filter(({ servers }) => servers !== own?.servers);
  if (others.length > 0) {
    const has = others.length === 1 ? 'has' : 'have';
    const text = `${gateways(others.length)} of the cluster ${has} other servers than the one on this machine`;
    found.push(finding('TL-CLUSTER-SERVERS', text, namesOf(others)));
  }
  if (strangers > 0) {
    const use = strangers === 1 ? 'uses' : 'use';
    const text = `${gateways(strangers)} with another key ${use} the store under the same name`;
    found.push(finding('TL-CLUSTER-KEYS', text));
  }
  return found;
}

function gateways(count: number): string {
  return count === 1 ? 'one gateway' : `${count} gateways`;
}
