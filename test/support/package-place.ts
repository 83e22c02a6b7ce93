// A place for tests that install packages with the real npm: a registry on this machine, the store, npm's cache, and the
// gateways that share them.

import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { GatewayProcess, type StartOptions } from './gateway-process.js';
import { dataFolderIn, dataIn } from './platform.js';
import { processesOf } from './processes.js';
import { Registry } from './registry.js';

/** A registry, a store, and the gateways that share them. */
export class PackagePlace {
  readonly registry: Registry;
  /** Holds the store and npm's cache; it is part of the command line of every npm. */
  readonly folder = mkdtempSync(join(tmpdir(), 'trunkline-packages-'));
  readonly #gateways: GatewayProcess[] = [];

  private constructor(registry: Registry) {
    this.registry = registry;
  }

  static async open(): Promise<PackagePlace> {
    return new PackagePlace(await Registry.open());
  }

  /** Another place with the same store, cache and published packages, for a test that changes them. */
  async copy(): Promise<PackagePlace> {
    const place = new PackagePlace(await Registry.open(this.registry));
    cpSync(this.folder, place.folder, { recursive: true, verbatimSymlinks: true });
    return place;
  }

  /** A folder for a configuration with this lock file beside it. */
  folderWith(lock: string): string {
    const folder = mkdtempSync(join(tmpdir(), `trunkline-${randomUUID()}-`));
    writeFileSync(join(folder, 'trunkline.lock'), lock);
    return folder;
  }

  async start(servers: StartOptions['servers'], options: Partial<StartOptions> = {}): Promise<GatewayProcess> {
    const { env, ...rest } = options;
    const ours = { ...dataIn(this.folder), ...this.registry.environment(this.folder), ...env };
    const gateway = await GatewayProcess.start({
      servers,
      env: ours,
      args: ['-v'],
      ...rest,
    });
    this.#gateways.push(gateway);
    return gateway;
  }

  get store(): string {
    return join(dataFolderIn(this.folder), 'store');
  }

  /** The folders of packages in the store. */
  stored(): string[] {
    return readdirSync(this.store).filter((name) => name.includes('@'));
  }

  /** The folders of installations that run, or that were killed. */
  staged(): string[] {
    return readdirSync(join(this.store, '.staging'));
  }

  /** Ends the gateways at the end of a test, and fails when a process of npm still runs. */
  async dispose(): Promise<void> {
    await Promise.all(this.#gateways.map((gateway) => gateway.dispose()));
    await this.registry.close();
    try {
      expect(processesOf(this.folder)).toEqual([]);
    } finally {
      rmSync(this.folder, { recursive: true, force: true });
    }
  }
}

/** The packages in the lock file beside the configuration of a gateway. */
export function lockOf({ folder }: { readonly folder: string }): Record<string, { version: string; tree: object }> {
  return JSON.parse(readFileSync(join(folder, 'trunkline.lock'), 'utf8')).packages;
}

/** Makes npm use a registry that does not exist. */
export const OFFLINE = { npm_config_registry: 'http://127.0.0.1:1/' };
