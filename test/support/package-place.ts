import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { GatewayProcess, type StartOptions } from './gateway-process.js';
import { processesOf } from './processes.js';
import { Registry } from './registry.js';

/** npm takes its time where everything else does, too. */
const PATIENCE_MS = 30_000;

/** A registry, a store, and the gateways that share them. */
export class PackagePlace {
  readonly registry: Registry;
  /** With the store and npm's cache; part of the command line of every npm. */
  readonly folder = mkdtempSync(join(tmpdir(), 'trunkline-packages-'));
  readonly #gateways: GatewayProcess[] = [];

  private constructor(registry: Registry) {
    this.registry = registry;
  }

  static async open(): Promise<PackagePlace> {
    return new PackagePlace(await Registry.open());
  }

  async start(servers: StartOptions['servers'], options: Partial<StartOptions> = {}): Promise<GatewayProcess> {
    const { env, ...rest } = options;
    const ours = { XDG_DATA_HOME: this.folder, ...this.registry.environment(this.folder), ...env };
    const gateway = await GatewayProcess.start({ servers, env: ours, args: ['-v'], patienceMs: PATIENCE_MS, ...rest });
    this.#gateways.push(gateway);
    return gateway;
  }

  /** Another gateway on the configuration of the first. */
  async startAgain({ folder }: GatewayProcess, env: Record<string, string> = {}): Promise<GatewayProcess> {
    return await this.start({}, { env, args: ['-v', '--config', join(folder, 'trunkline.yaml')] });
  }

  get store(): string {
    return join(this.folder, 'trunkline', 'store');
  }

  /** The folders of packages in the store. */
  stored(): string[] {
    return readdirSync(this.store).filter((name) => name.includes('@'));
  }

  /** What is being installed, or was when it was killed. */
  staged(): string[] {
    return readdirSync(join(this.store, '.staging'));
  }

  /** To be called at the end of each test: ends the gateways; nothing of npm may be left. */
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

/** What is locked beside the configuration of a gateway. */
export function lockOf({ folder }: { readonly folder: string }): Record<string, { version: string; tree: object }> {
  return JSON.parse(readFileSync(join(folder, 'trunkline.lock'), 'utf8')).packages;
}

/** Nobody listens there. */
export const OFFLINE = { npm_config_registry: 'http://127.0.0.1:1/' };
