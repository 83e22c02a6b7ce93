import { readConfig } from '../../../app/read-config.js';
import type { Address } from '../../../config/schema/cluster-address.js';
import { type Asked, askGateway } from '../../../extras/cluster/ask-gateway.js';
import type { ClusterView } from '../../../extras/cluster/members.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { checkCluster } from '../../../setup/doctor/cluster.js';
import { createSeals, readSealKeys } from '../../../state/seal.js';
import { printable, sentence } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { answer, tell } from '../../output.js';
import { type Look, lookOf, stateCell, table } from '../../terminal.js';

/** `trunkline cluster status`: the gateways of the cluster, as the one on this machine knows them. */
export async function clusterStatus({ settings, isJson }: Invocation): Promise<number> {
  const { file, gateway } = await readConfig(settings);
  const { cluster, sealKeyFile, secretFolder } = gateway;
  if (cluster === undefined || sealKeyFile === undefined)
    throw new UsageError(
      `${file} has no \`gateway.cluster\`, so a gateway of this configuration knows no others`,
      'see docs/cluster.md to make a cluster, or name its configuration with `--config`',
    );
  if ('fault' in cluster)
    throw new UsageError(cluster.fault, 'run this command with the environment of the gateway, or correct the file');
  const asked = await askOwn(cluster.listen, sealKeyFile, secretFolder);
  const findings = checkCluster(asked, sealKeyFile);
  const advice = findings
    .filter(({ level }) => level !== 'ok')
    .map(({ sentence: found, evidence, remedy }) => `${sentence([found, ...evidence].join(': '))} ${remedy}`);
  if (asked.kind !== 'answered') {
    tell(advice.join('\n'));
    return EXIT.failed;
  }
  const { view } = asked;
  const text = () => [clusterText(view, lookOf(process.stdout)), ...advice.map(printable)].join('\n\n');
  return await answer(isJson, { members: view.members.map(toJson) }, text);
}

/** Asks the gateway on this machine about its cluster, at the address where it listens for the other members. */
export async function askOwn(listen: Address, keyFile: string, secretFolder: string | undefined): Promise<Asked> {
  const seals = createSeals({ sharedKeys: await readSealKeys(keyFile, secretFolder) });
  return await askGateway({ listen, keys: seals.keysFor('hops') });
}

function toJson({ instance, address, state, version, load }: ClusterView['members'][number]) {
  return { instance, address, state, version, load };
}

function clusterText({ instance: self, members, storeFault }: ClusterView, look: Look): string {
  const rows = members.map(({ instance, address, state, version, load }) => [
    ...[instance === self ? `${instance} (here)` : instance, address],
    ...[stateCell(state, look), version, String(load)],
  ]);
  const count = members.length === 1 ? 'one gateway' : `${members.length} gateways`;
  const store = storeFault === undefined ? 'The store answers.' : 'The store does not answer.';
  const alone =
    members.length > 1 || storeFault !== undefined
      ? []
      : ['Others join if they have the same store, the same `name` and the same key file.'];
  return [
    `The cluster has ${count}. ${[store, ...alone].join(' ')}`,
    table([['INSTANCE', 'ADDRESS', 'STATE', 'VERSION', 'LOAD'], ...rows], look),
  ].join('\n\n');
}
