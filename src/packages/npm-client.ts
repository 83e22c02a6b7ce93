import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GroupGuard } from '../process/orphan-guard.js';
import type { PackageRequest } from '../supervision/child-spec.js';
import type { Clock } from '../timing/clock.js';
import type { LockedPackage } from './lock-file.js';
import { findNpm, type NpmResult, runNpm } from './npm-process.js';
import { readInstalled } from './package-store.js';

export interface NpmClientOptions {
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orphanGuard: Pick<GroupGuard, 'add' | 'remove'>;
  /** Working folder of npm for lookups. Only this user may write there, since npm reads settings from it. */
  readonly folder: string;
}

/** A failure of npm. The message is one line; `lines` is npm's own output. */
export class NpmFault extends Error {
  override readonly name = 'NpmFault';
  readonly lines: readonly string[];

  constructor(message: string, lines: readonly string[] = []) {
    super(message);
    this.lines = lines;
  }
}

/**
 * Runs npm with the user's own settings for registry, proxy and credentials. It is the npm that came with Node, in a
 * process of its own that runs only during an installation or a lookup.
 */
export class NpmClient {
  readonly #options: NpmClientOptions;

  constructor(options: NpmClientOptions) {
    this.#options = options;
  }

  /** Looks up the newest version of a package. */
  async newestVersion(name: string, signal: AbortSignal): Promise<string> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { stdout } = await this.#run(['view', name, 'version'], folder, signal);
    return stdout.trim();
  }

  /** Resolves the versions of a package and its dependencies without installing them. */
  async resolve(folder: string, { name, version }: PackageRequest, signal: AbortSignal): Promise<LockedPackage> {
    await writeJson(folder, 'package.json', PACKAGE);
    await this.#run(['install', specOf(name, version), '--package-lock-only', SCRIPTS_OFF, ...OPTIONS], folder, signal);
    return readResult(folder, name);
  }

  /** Installs into an empty folder: the locked versions, or the newest ones when nothing is locked. */
  async install(
    folder: string,
    { name, version, installScripts }: PackageRequest,
    locked: LockedPackage | undefined,
    signal: AbortSignal,
  ): Promise<LockedPackage> {
    const scripts = installScripts ? SCRIPTS_ON : SCRIPTS_OFF;
    if (locked === undefined) {
      await writeJson(folder, 'package.json', PACKAGE);
      await this.#run(['install', specOf(name, version), scripts, ...OPTIONS], folder, signal);
    } else {
      const dependencies = { [name]: locked.version };
      const packages = { '': { dependencies }, ...locked.tree };
      await writeJson(folder, 'package.json', { ...PACKAGE, dependencies });
      await writeJson(folder, 'package-lock.json', { lockfileVersion: 3, requires: true, packages });
      await this.#run(['ci', scripts, ...OPTIONS], folder, signal);
    }
    const installed = readResult(folder, name);
    if (locked !== undefined && installed.integrity !== locked.integrity) {
      throw new NpmFault(`EINTEGRITY: ${locked.integrity} is locked, ${installed.integrity} was installed`);
    }
    // The locked entry, since the tree that npm writes now can differ in details.
    return locked ?? installed;
  }

  async #run(args: readonly string[], cwd: string, signal: AbortSignal): Promise<NpmResult> {
    const { clock, environment, orphanGuard } = this.#options;
    const npm = findNpm(process.execPath, environment.PATH ?? environment.Path);
    if (npm === undefined) {
      throw new NpmFault('npm was not found next to Node or in PATH; install Node together with npm');
    }
    const result = await runNpm({
      npm,
      nodePath: process.execPath,
      args: [...args, ...ALWAYS, '--prefix', cwd],
      cwd,
      env: args.includes(SCRIPTS_ON) ? { ...environment, ...ALL_SCRIPTS } : environment,
      clock,
      signal,
      onBegun: (pgid) => orphanGuard.add(pgid),
      onGone: (pgid) => orphanGuard.remove(pgid),
    });
    signal.throwIfAborted();
    if (result.code !== 0) throw new NpmFault(describe(result), result.lines);
    return result;
  }
}

const PACKAGE = { private: true };

/** Overrides user settings that would change what these commands do. */
const ALWAYS = ['--global=false', '--dry-run=false', '--loglevel=error', '--no-progress', '--no-update-notifier'];
const OPTIONS = [
  '--omit=dev',
  '--save-exact',
  '--package-lock=true',
  '--omit-lockfile-registry-resolved',
  '--no-audit',
  '--no-fund',
  // Trunkline retries the installation itself; npm's cache has what was downloaded already.
  '--fetch-retry-mintimeout=500',
  '--fetch-retry-maxtimeout=2000',
];

const SCRIPTS_OFF = '--ignore-scripts';
const SCRIPTS_ON = '--ignore-scripts=false';
/** Newer versions of npm run install scripts only with this setting; older versions ignore it. */
const ALL_SCRIPTS = { npm_config_dangerously_allow_all_scripts: 'true' };

function specOf(name: string, version: string | undefined): string {
  return version === undefined ? name : `${name}@${version}`;
}

async function writeJson(folder: string, name: string, value: unknown): Promise<void> {
  await writeFile(join(folder, name), JSON.stringify(value));
}

function readResult(folder: string, name: string): LockedPackage {
  const installed = readInstalled(folder, name);
  if (installed === undefined) throw new NpmFault(`npm installed ${name} without recording its integrity`);
  return installed;
}

/** The error code of npm, such as `E404`, and the first line that explains it. */
function describe({ code, lines }: NpmResult): string {
  const said = lines.map((line) => line.replace(/^npm (?:error|ERR!) ?/i, '').trim()).filter(Boolean);
  const errorCode = said.find((line) => line.startsWith('code '))?.slice('code '.length);
  const more = said.find((line) => !/^(?:code|syscall|errno|path|notarget) /.test(line));
  const parts = [errorCode, more?.slice(0, MAX_REASON_CHARACTERS)].filter((part) => part !== undefined);
  return parts.length === 0 ? `npm ended with code ${code}` : parts.join(': ');
}

const MAX_REASON_CHARACTERS = 300;
