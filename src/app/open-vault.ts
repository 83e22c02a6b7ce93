import type { Vault } from '../auth/vault.js';
import type { ClusterStore } from '../cluster/store.js';
import type { Config } from '../config/resolve/config.js';
import { createSeals, readSealKeys } from '../state/seal.js';
import { loginFolder } from '../state/user-files.js';
import { openClusterStore } from './open-cluster-store.js';

/**
 * Opens the vault of a configuration: the store of its cluster, or a folder of this user if there is no cluster. `shared` is
 * the store of this process if the process is a member of the cluster.
 */
export async function openVault(config: Pick<Config, 'gateway'>, shared?: ClusterStore): Promise<Vault> {
  const { cluster, sealKeyFile, secretFolder } = config.gateway;
  if (cluster === undefined || sealKeyFile === undefined) {
    const { FolderVault } = await import('../auth/folder-vault.js');
    return new FolderVault(loginFolder());
  }
  const { StoreVault } = await import('../auth/store-vault.js');
  let keys: ReturnType<ReturnType<typeof createSeals>['keysFor']> | undefined;
  const readKeys = async () => {
    keys ??= createSeals({ sharedKeys: await readSealKeys(sealKeyFile, secretFolder) }).keysFor('logins');
    return keys;
  };
  return new StoreVault({ ...(shared === undefined ? ownStore(config) : { open: async () => shared }), readKeys });
}

/** The store of a process that is no member. It connects when it is asked, because this process has no heartbeat. */
function ownStore(config: Pick<Config, 'gateway'>) {
  let opened: ReturnType<typeof openClusterStore> | undefined;
  return {
    open: async () => {
      opened ??= openClusterStore(config);
      const { store } = (await opened) ?? {};
      if (store === undefined) throw new Error('The configuration has no cluster');
      if (!store.isUp) await store.connect();
      return store;
    },
    close: async () => await (await opened)?.store.close(),
  };
}
