import type { ClusterStore } from '../cluster/store.js';
import type { ClusterConfig } from '../config/file/check-file.js';
import type { Config } from '../config/resolve/config.js';
import { UsageError } from '../errors/usage-error.js';

/** Opens the store of the cluster. Resolves with `undefined` if the configuration has no cluster. Throws a `UsageError`. */
export async function openClusterStore({
  gateway: { cluster, secretFolder },
}: Pick<Config, 'gateway'>): Promise<{ readonly config: ClusterConfig; readonly store: ClusterStore } | undefined> {
  if (cluster === undefined) return undefined;
  if ('fault' in cluster)
    throw new UsageError(cluster.fault, 'set the variable, or correct `gateway.cluster` in the configuration');
  const { openRedisStore } = await import('../cluster/redis-store.js');
  const { store: location, name, storeUser: user, storePasswordFile: passwordFile, storeCaFile: caFile } = cluster;
  return { config: cluster, store: await openRedisStore({ location, name, user, passwordFile, secretFolder, caFile }) };
}
