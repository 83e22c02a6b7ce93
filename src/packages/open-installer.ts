import { availableParallelism } from 'node:os';
import type { Logger } from '../observe/logger.js';
import type { GroupGuard } from '../process/orphan-guard.js';
import { openProcessLock } from '../state/process-lock.js';
import type { Clock } from '../timing/clock.js';
import { openLockFile, openStore, type PackagePlaces } from './installed-packages.js';
import { NpmClient } from './npm-client.js';
import { PackageInstaller } from './package-installer.js';

export interface OpenInstallerOptions {
  readonly places: PackagePlaces;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orphanGuard: Pick<GroupGuard, 'add' | 'remove'>;
}

/** The installer and the npm client that it uses. */
export interface OpenedInstaller {
  readonly installer: PackageInstaller;
  readonly npm: NpmClient;
}

/** npm computes half of the time, and otherwise waits for the registry and the disk. */
const EXTRA_INSTALLS = 2;
/** Each npm may take some hundred MB of memory. */
const MAX_INSTALLS = 8;

/** Creates the package installer. This file is loaded only when there is something to install. */
export function openInstaller({
  places,
  clock,
  logger,
  environment,
  orphanGuard,
}: OpenInstallerOptions): OpenedInstaller {
  const npm = new NpmClient({ clock, environment, orphanGuard, folder: places.storeFolder });
  const storeLock = openProcessLock(places.storeFolder, (file, reason) =>
    logger.warn({ file, reason }, 'a lock of the package store is torn, so nobody can hold it: it is passed over'),
  );
  const installer = new PackageInstaller({
    clock,
    store: openStore(places),
    storeLock,
    lockFile: openLockFile(places, (file) =>
      logger.warn({ file }, 'the lock file is empty, as after a power failure, so its packages are locked again'),
    ),
    npm,
    limit: Math.min(availableParallelism() + EXTRA_INSTALLS, MAX_INSTALLS),
    onFallbackPath: (file) =>
      logger.warn(
        { file },
        'the folder of the configuration cannot be written, so the lock file is stored in the data folder',
      ),
    onDamaged: (folder) =>
      logger.warn({ folder }, 'an installed package is damaged, as after a power failure, so it is installed again'),
  });
  return { installer, npm };
}
