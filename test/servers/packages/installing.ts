// Installations with the real npm from a registry of the test, without a gateway.
import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import type { LockedPackage } from '../../../src/servers/packages/lock-file.js';
import { NpmClient } from '../../../src/servers/packages/npm-client.js';
import { folderWith } from '../../config/files.js';
import { realClock } from '../../support/processes.js';
import { Registry } from '../../support/registry.js';

export class Installing {
  readonly registry: Registry;
  /** Has the cache of npm, the home folder of the user as `home`, and what the test makes. */
  readonly folder = folderWith();

  private constructor(registry: Registry) {
    this.registry = registry;
    mkdirSync(this.home);
  }

  static async open(): Promise<Installing> {
    return new Installing(await Registry.open());
  }

  get home(): string {
    return join(this.folder, 'home');
  }

  /** Installs the package `tool`. `into` is its folder. */
  async install(
    request: object = {},
    locked?: LockedPackage,
  ): Promise<{ readonly installed: LockedPackage; readonly into: string }> {
    const into = mkdtempSync(join(this.folder, 'staging-'));
    const client = new NpmClient({
      clock: realClock,
      environment: {
        ...process.env,
        HOME: this.home,
        SECRET: 'hunter2',
        REGISTRY_URL: this.registry.url,
        ...this.registry.environment(this.folder),
      },
      orphanGuard: { add: () => {}, remove: () => {} },
      folder: this.folder,
    });
    const usual = { foreignDependencies: false, isConfined: false, installScripts: false, env: {}, budgetMs: 60_000 };
    const wanted = { name: 'tool', version: undefined, shown: 'tool', bin: undefined, ...usual, ...request };
    return { installed: await client.install(into, wanted, locked, AbortSignal.timeout(60_000)), into };
  }
}
