import type { ClusterConfig, GatewayConfig } from '../../config/file/check-file.js';
import type { Config } from '../../config/resolve/config.js';
import { UsageError } from '../../host/errors/usage-error.js';
import { createSeals, readSealKeys } from '../../state/seal.js';
import { loginFolder } from '../../state/user-files.js';
import type { Vault } from '../../upstream/auth/vault.js';
import type { ClusterStore } from './store.js';

/** Opens the store of a cluster. Rejects with a `UsageError` if a setting, or a file that it names, cannot be used. */
export async function openClusterStore(
  cluster: NonNullable<Config['gateway']['cluster']>,
  secretFolder: string | undefined,
): Promise<{ readonly config: ClusterConfig; readonly store: ClusterStore }> {
  if ('fault' in cluster)
    throw new UsageError(cluster.fault, 'set the variable, or correct `gateway.cluster` in the configuration');
  const { openRedisStore } = await import('./redis-store.js');
  const { store: location, name, storeUser: user, storePasswordFile: passwordFile, storeCaFile: caFile } = cluster;
  return { config: cluster, store: await openRedisStore({ location, name, user, passwordFile, secretFolder, caFile }) };
}

/**
 * Opens the vault of a configuration: the store of its cluster, or a folder of this user if there is no cluster. `shared` is
 * the store of this process if the process is a member of the cluster.
 */
export async function openVault(
  { gateway }: { readonly gateway: GatewayConfig },
  shared?: ClusterStore,
): Promise<Vault> {
  const { cluster, sealKeyFile, secretFolder } = gateway;
  if (cluster === undefined || sealKeyFile === undefined) {
    const { FolderVault } = await import('../../upstream/auth/folder-vault.js');
    return new FolderVault(loginFolder());
  }
  const { StoreVault } = await import('./store-vault.js');
  let keys: ReturnType<ReturnType<typeof createSeals>['keysFor']> | undefined;
  const readKeys = async () => {
    keys ??= createSeals({ sharedKeys: await readSealKeys(sealKeyFile, secretFolder) }).keysFor('logins');
    return keys;
  };
  return new StoreVault({
    ...(shared === undefined ? ownStore(() => openClusterStore(cluster, secretFolder)) : { open: async () => shared }),
    readKeys,
  });
}

/** Opens the store for a process that is no member. The store connects when it is needed, because this process sends no heartbeats. */
function ownStore(openStore: () => ReturnType<typeof openClusterStore>) {
  let opened: ReturnType<typeof openClusterStore> | undefined;
  return {
    open: async () => {
      opened ??= openStore();
      const { store } = await opened;
      if (!store.isUp) await store.connect();
      return store;
    },
    close: async () => await (await opened)?.store.close(),
  };
}
