import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LockedPackage } from './lock-file.js';

/** Which packages are looked for. */
export interface StoredPackage {
  readonly name: string;
  readonly locked: LockedPackage;
  /** Whether programs of theirs ran when they were installed, which may have built something for this very machine. */
  readonly installScripts: boolean;
}

/** What of the machine decides which packages are installed, and what they build. */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
  /** Of Node, as in `process.versions.modules`. */
  readonly abi: string;
}

/**
 * The packages that Trunkline has installed, each with all that it needs in a folder of its own:
 * `name@version-digest`, the digest being that of everything in it.
 *
 * A folder that is there is complete, since it came there by one rename, and never changes. Several configurations
 * share them.
 */
export class PackageStore {
  readonly #folder: string;
  readonly #machine: Machine;

  constructor(folder: string, machine: Machine) {
    this.#folder = folder;
    this.#machine = machine;
  }

  /** Where it is, or will be. */
  folderOf({ name, locked, installScripts }: StoredPackage): string {
    const { platform, arch, abi } = this.#machine;
    const made = installScripts ? [abi] : [];
    const content = JSON.stringify([contentOf(locked.tree), platform, arch, ...made]);
    const digest = createHash('sha256').update(content).digest('hex').slice(0, DIGEST_LENGTH);
    return join(this.#folder, `${folderName(name, locked.version)}${digest}`);
  }

  has(wanted: StoredPackage): boolean {
    return existsSync(this.folderOf(wanted));
  }

  /** One that was installed for another configuration, if it is the version asked for. */
  findVersion(name: string, version: string, installScripts: boolean): LockedPackage | undefined {
    const prefix = folderName(name, version);
    for (const entry of listed(this.#folder)) {
      if (!entry.startsWith(prefix) || entry.length !== prefix.length + DIGEST_LENGTH) continue;
      const folder = join(this.#folder, entry);
      const locked = readInstalled(folder, name);
      if (locked !== undefined && this.folderOf({ name, locked, installScripts }) === folder) return locked;
    }
    return undefined;
  }

  /** A new folder to install into, from where `publish` is a rename. */
  async newStaging(): Promise<string> {
    const folder = join(this.#folder, STAGING);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return await mkdtemp(join(folder, 'install-'));
  }

  /** Makes what was installed there available to all, at once. Of two that install the same, the first one counts. */
  async publish(staging: string, wanted: StoredPackage): Promise<string> {
    const folder = this.folderOf(wanted);
    try {
      await rename(staging, folder);
    } catch (error) {
      if (!existsSync(folder)) throw error;
    }
    return folder;
  }

  /** Removes what was not published. */
  async discard(staging: string): Promise<void> {
    await rm(staging, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Removes what installations left behind that were killed; nobody may be installing. What resists is left. */
  async sweep(): Promise<void> {
    const folder = join(this.#folder, STAGING);
    const names = await readdir(folder).catch((): string[] => []);
    await Promise.allSettled(names.map((name) => this.discard(join(folder, name))));
  }
}

const STAGING = '.staging';
const DIGEST_LENGTH = 16;

/** The beginning of the name; the digest follows. A scope is joined by `+`, which stands in no name. */
function folderName(name: string, version: string): string {
  return `${name.replace('/', '+')}@${version}-`;
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Nothing was ever installed.
    return [];
  }
}

/** What npm has installed into a folder: how it is to be locked; `undefined` when the package is not among it. */
export function readInstalled(folder: string, name: string): LockedPackage | undefined {
  let value: { packages?: Record<string, { version?: unknown; integrity?: unknown }> };
  try {
    value = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  } catch {
    // Not there, or not of npm.
    return undefined;
  }
  // What stands under "" is the folder itself.
  const { '': _, ...tree } = value.packages ?? {};
  const { version, integrity } = tree[`node_modules/${name}`] ?? {};
  return typeof version === 'string' && typeof integrity === 'string' ? { version, integrity, tree } : undefined;
}

/** What is installed where; npm says more of a package once it has seen it, which makes it no other one. */
function contentOf(tree: LockedPackage['tree']): unknown {
  const entries = Object.entries(tree as Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  return entries
    .map(([path, { version, integrity, resolved }]) => [path, version ?? null, integrity ?? resolved ?? null])
    .sort(([one], [other]) => (String(one) < String(other) ? -1 : 1));
}
