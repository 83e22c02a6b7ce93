import { mkdir, rm } from 'node:fs/promises';
import { devNull, homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { ERROR_SIGNS } from '../../host/errors/error-text.js';
import { fileErrorIn } from '../../host/errors/file-error.js';
import { readTextFile, realPath, replaceFile } from '../../host/files/whole-file.js';
import type { PackageRequest } from '../../spec/server-spec.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import type { Clock } from '../../wire/timing/clock.js';
import { endGroup } from '../process/end-group.js';
import { environmentOf, networkVariables, npmEnvironment, serverNode } from '../process/environment.js';
import { type SpawnRequest, spawnChild } from '../process/spawn-child.js';
import type { LockedPackage } from './lock-file.js';
import { readInstalled } from './package-store.js';

interface NpmRules {
  readonly env: PackageRequest['env'];
  readonly foreignDependencies: boolean;
  readonly isConfined: boolean;
}

interface NpmClientOptions {
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orphanGuard: { add(pgid: number): void; remove(pgid: number): void };
  /** Working folder of npm for lookups. Only this user may write there, because npm reads settings from the folder. */
  readonly folder: string;
}

/** A failure of npm. The message is one line, with the next step if one is known. `lines` is npm's own output. */
export class NpmFault extends Error {
  override readonly name = 'NpmFault';
  readonly lines: readonly string[];

  constructor({ message, hint }: NpmFailure, lines: readonly string[] = []) {
    super(hint === undefined ? message : `${message}; ${hint}`);
    this.lines = lines;
  }
}

export interface PublishedVersions {
  /** The versions by dist-tag, such as `latest`. */
  readonly tags: Readonly<Record<string, string>>;
  readonly versions: readonly string[];
  /** `engines` in the package.json of the version `latest`. */
  readonly engines: unknown;
}

export interface NewestVersion {
  readonly version: string;
  /** `engines` in the package.json of this version. */
  readonly engines: unknown;
}

/**
 * Runs the npm that came with Node, with the user's own settings for registry, proxy and credentials, in a process that runs
 * only during an installation or a lookup.
 */
export class NpmClient {
  readonly #options: NpmClientOptions;

  constructor(options: NpmClientOptions) {
    this.#options = options;
  }

  async published(
    { name, env }: { readonly name: string; readonly env: PackageRequest['env'] },
    signal: AbortSignal,
  ): Promise<PublishedVersions> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const { stdout } = await this.#run(
      ['view', name, 'dist-tags', 'versions', 'engines', '--json'],
      folder,
      { env, foreignDependencies: false, isConfined: false },
      signal,
    );
    return readPublished(stdout, name);
  }

  /** Resolves the versions of a package and its dependencies without installing them. */
  async resolve(folder: string, request: PackageRequest, signal: AbortSignal): Promise<LockedPackage> {
    const { name, version } = request;
    await writeJson(folder, 'package.json', PACKAGE);
    const args = ['install', specOf(name, version), '--package-lock-only', SCRIPTS_OFF, ...OPTIONS];
    await this.#run(args, folder, request, signal);
    return permitted(readResult(folder, name), request);
  }

  /** Installs the locked versions, or else the newest accepted versions, into an empty folder. */
  async install(
    folder: string,
    request: PackageRequest,
    locked: LockedPackage | undefined,
    signal: AbortSignal,
  ): Promise<LockedPackage> {
    const { name, version, installScripts } = request;
    const scripts = installScripts ? SCRIPTS_ON : SCRIPTS_OFF;
    if (locked === undefined) {
      await writeJson(folder, 'package.json', PACKAGE);
      await this.#run(['install', specOf(name, version), scripts, ...OPTIONS], folder, request, signal);
    } else {
      permitted(locked, request);
      const dependencies = { [name]: locked.version };
      const packages = { '': { dependencies }, ...locked.tree };
      await writeJson(folder, 'package.json', { ...PACKAGE, dependencies });
      await writeJson(folder, 'package-lock.json', { lockfileVersion: 3, requires: true, packages });
      await this.#run(['ci', scripts, ...OPTIONS], folder, request, signal);
    }
    const installed = permitted(readResult(folder, name), request);
    if (locked !== undefined && installed.integrity !== locked.integrity) {
      throw new NpmFault({
        message: `EINTEGRITY: ${locked.integrity} is locked, ${installed.integrity} was installed`,
      });
    }
    // Returns the locked entry, because the tree that npm writes now can differ in details.
    return locked ?? installed;
  }

  async #run(
    args: readonly string[],
    cwd: string,
    { env: declared, foreignDependencies, isConfined }: NpmRules,
    signal: AbortSignal,
  ): Promise<NpmResult> {
    const { clock, orphanGuard } = this.#options;
    const node = serverNode();
    const environment = npmEnvironment({ ...this.#options.environment, ...node.variables }, declared);
    const npm = findNpm(node.path, environment.PATH ?? environment.Path);
    if (npm === undefined) {
      throw new NpmFault({
        message: `npm was not found next to Node (${node.path}) or in PATH`,
        hint: 'install Node.js, which brings npm, then restart Trunkline',
      });
    }
    const run = {
      npm,
      nodePath: node.path,
      args: [...args, ...ALWAYS, ...(foreignDependencies ? [] : REGISTRY_ALONE), '--prefix', cwd],
      cwd,
      env: {
        ...environment,
        ...(args.includes(SCRIPTS_ON) && ALL_SCRIPTS),
        ...gitOf(environment, foreignDependencies),
      },
      clock,
      signal,
      onBegun: (pgid: number) => orphanGuard.add(pgid),
      onGone: (pgid: number) => orphanGuard.remove(pgid),
    };
    const result = isConfined ? await runConfined(run, declared) : await runNpm(run);
    signal.throwIfAborted();
    if (result.code !== 0) throw new NpmFault(explainNpmFailure(result.code, result.lines), result.lines);
    return result;
  }
}

const PACKAGE = { private: true };

/** Overrides user settings that would change the effect of these commands. */
const ALWAYS = ['--global=false', '--dry-run=false', '--loglevel=error', '--no-progress', '--no-update-notifier'];
/** Refuses dependencies from outside of the registry. The result is checked, too, because npm before 11 ignores these options. */
const REGISTRY_ALONE = ['git', 'remote', 'file', 'directory'].map((kind) => `--allow-${kind}=none`);
const OPTIONS = [
  '--omit=dev',
  '--save-exact',
  '--package-lock=true',
  '--omit-lockfile-registry-resolved',
  '--no-audit',
  '--no-fund',
  // Short, because Trunkline repeats the installation itself, and npm's cache has the downloads.
  '--fetch-retry-mintimeout=500',
  '--fetch-retry-maxtimeout=2000',
];

const SCRIPTS_OFF = '--ignore-scripts';
const SCRIPTS_ON = '--ignore-scripts=false';
/** Setting without which newer versions of npm run no install scripts. Older versions ignore the setting. */
const ALL_SCRIPTS = { npm_config_dangerously_allow_all_scripts: 'true' };

/**
 * Variables that name the git of npm, because a repository could name another one in its `.npmrc`. It is a file that cannot exist,
 * unless dependencies may come from repositories.
 */
function gitOf(environment: Readonly<Record<string, string | undefined>>, isAllowed: boolean) {
  const { npm_config_git: own = 'git' } = environment;
  return { NPM_CONFIG_GIT: undefined, npm_config_git: isAllowed ? own : join(devNull, 'git') };
}

/** Returns a tree whose packages all come from the registry, unless others are allowed. Throws an `NpmFault`. */
function permitted(locked: LockedPackage, { foreignDependencies }: PackageRequest): LockedPackage {
  // npm notes the origin of a package only if it is not the registry.
  const foreign = Object.entries(locked.tree).find(
    ([, entry]) => isRecord(entry) && (entry.resolved !== undefined || entry.link === true),
  );
  if (foreign === undefined || foreignDependencies) return locked;
  const name = foreign[0].slice(foreign[0].lastIndexOf('node_modules/') + 'node_modules/'.length);
  throw new NpmFault({ message: `the package needs \`${name}\` from elsewhere than from the registry`, hint: FOREIGN });
}

const FOREIGN =
  'npm may run what comes from there, so set `foreignDependencies: true` in the entry of the server only if you trust it';

function specOf(name: string, version: string | undefined): string {
  return version === undefined ? name : `${name}@${version}`;
}

/** Reads the answer of `npm view`. Throws an `NpmFault` if the answer is not a record. */
export function readPublished(stdout: string, name: string): PublishedVersions {
  const answer = parseJson(stdout);
  // Some versions of npm answer with a list.
  const view = Array.isArray(answer) ? answer.at(-1) : answer;
  if (!isRecord(view)) throw new NpmFault({ message: `npm reported no versions of ${name}` });
  const { 'dist-tags': tags, versions, engines } = view;
  return {
    tags: isRecord(tags) ? (tags as Readonly<Record<string, string>>) : {},
    // npm prints a list with one element as the element itself.
    versions: [versions ?? []].flat().filter((version) => typeof version === 'string'),
    engines,
  };
}

async function writeJson(folder: string, name: string, value: unknown): Promise<void> {
  await replaceFile(join(folder, name), JSON.stringify(value), { mode: 0o666 });
}

function readResult(folder: string, name: string): LockedPackage {
  const installed = readInstalled(folder, name);
  if (installed === undefined)
    throw new NpmFault({ message: `npm installed ${name} without recording its version and integrity` });
  return installed;
}

/** The version with the tag `latest`; `undefined` if no version has it. */
export function newestOf({ tags: { latest }, engines }: PublishedVersions): NewestVersion | undefined {
  return latest === undefined ? undefined : { version: latest, engines };
}

const CLI = join('npm', 'bin', 'npm-cli.js');

/**
 * Finds npm's JavaScript program, to be run with Node: the npm next to this Node, or else the npm in `path`. The npm next to
 * Node comes first, because desktop programs have another PATH than shells.
 */
export function findNpm(nodePath: string, path = ''): string | undefined {
  const node = dirname(nodePath);
  const besideNode = [
    join(node, '..', 'lib', 'node_modules', CLI),
    join(node, 'node_modules', CLI),
    join(node, '..', 'libexec', 'lib', 'node_modules', CLI),
  ];
  const inPath = path
    .split(delimiter)
    .filter(Boolean)
    .flatMap((folder) => [
      join(folder, 'npm'),
      join(folder, 'node_modules', CLI),
      join(folder, '..', 'lib', 'node_modules', CLI),
    ]);
  return [...besideNode, ...inPath].map(realPath).find((file) => file?.endsWith('npm-cli.js'));
}

export interface NpmRun {
  readonly npm: string;
  readonly nodePath: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The complete environment of the user, because variables can configure the registry and the proxy. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Aborted to end npm and all processes that npm has started. */
  readonly signal: AbortSignal;
  /** Called with the process group when it starts. */
  readonly onBegun: (pgid: number) => void;
  /** Called when no process of the group is left. */
  readonly onGone: (pgid: number) => void;
  readonly confine?: (request: SpawnRequest) => Promise<SpawnRequest>;
}

interface NpmResult {
  readonly code: number | null;
  readonly stdout: string;
  /** Lines of stderr. */
  readonly lines: readonly string[];
}

/** Limit on stdout, and on stderr. */
const MAX_OUTPUT_CHARACTERS = 1024 * 1024;
/** Stops an aborted npm quickly. An npm that has ended gets 50 ms, in which its exit is noticed. */
const LADDER = { termAfterMs: 50, killAfterMs: 1_000 };

/** Runs npm in its own process group. Resolves when no process of the group is left. Rejects only if `confine` does. */
export async function runNpm(run: NpmRun): Promise<NpmResult> {
  const { npm, nodePath, args, cwd, clock, signal } = run;
  let fault: string | undefined;
  const env = Object.fromEntries(Object.entries(run.env).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  const request: SpawnRequest = { command: nodePath, args: [npm, ...args], cwd, env };
  const child = spawnChild((await run.confine?.(request)) ?? request, {
    onSpawnError: (error) => {
      fault = error.message;
    },
    onExit: () => {},
  });
  if (child.pid !== undefined) run.onBegun(child.pid);
  child.stdin.end();
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const end = () => endGroup(child, LADDER, clock);
  const onAbort = () => void end();
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  const { code } = await child.exit;
  signal.removeEventListener('abort', onAbort);
  // Waits for the rest of the output, and ends processes that an install script has left behind.
  while (!(await end()).gone);
  if (child.pid !== undefined) run.onGone(child.pid);
  const lines = stderr()
    .split('\n')
    .filter((line) => line.trim() !== '');
  return { code, stdout: stdout(), lines: fault === undefined ? lines : [...lines, fault] };
}

/**
 * Runs npm in the sandbox, like the servers that need the package. npm gets its settings and the variables that they name, because
 * the registry may need them. Its home folder is a new one beside `cwd`, because packages could change a shared cache. Rejects with
 * an `NpmFault` if nothing can be confined.
 */
async function runConfined(run: NpmRun, declared: PackageRequest['env']): Promise<NpmResult> {
  const { env, nodePath, npm, cwd, args } = run;
  const home = env.HOME || homedir();
  const ownHome = `${cwd}-home`;
  const settings = [env.npm_config_userconfig ?? join(home, '.npmrc'), env.npm_config_globalconfig ?? '/etc/npmrc'];
  const text = settings.map((file) => readTextFile(file) ?? '').join('\n');
  const named = [...text.matchAll(/\$\{(\w+)\??\}/g)].map(([, name = '']) => [name, env[name]] as const);
  const [, cafile] = /^\s*cafile\s*=\s*"?([^"\n]+)/m.exec(text) ?? [];
  const read = [...settings, env.npm_config_cafile ?? cafile?.trim() ?? ''].filter((file) => file !== '');
  await mkdir(ownHome, { mode: 0o700 });
  try {
    return await runNpm({
      ...run,
      args: [...args, '--cache', join(home, '.npm')],
      env: {
        ...environmentOf({ command: nodePath, args: [npm], env: declared }, env),
        ...networkVariables(env),
        ...Object.fromEntries(named),
        TMPDIR: undefined,
      },
      confine: async (request) => {
        const { confineInstallation } = await import('../sandbox/confined-launch.js');
        const confined = await confineInstallation(request, { home, ownHome, read });
        if (!('code' in confined)) return confined;
        const { code, reason, remedy } = confined;
        throw new NpmFault({
          message: `its server must be confined, and so must npm, but ${reason}`,
          hint: `${remedy} (${code})`,
        });
      },
    });
  } finally {
    await rm(ownHome, { recursive: true, force: true, maxRetries: 3 });
  }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    if (text.length < MAX_OUTPUT_CHARACTERS) text += chunk;
  });
  return () => text;
}

/** The cause of a failure of npm, in one line, and the next step for the user. */
interface NpmFailure {
  /** Has the error code of npm, such as `E404`, if npm printed one. */
  readonly message: string;
  /** The next step. Absent for an unknown cause. */
  readonly hint?: string;
}

export function explainNpmFailure(code: number | null, lines: readonly string[]): NpmFailure {
  const said = lines.map((line) => line.replace(/^npm (?:error|ERR!) ?/i, '').trim()).filter(Boolean);
  const errorCode = said.find((line) => line.startsWith('code '))?.slice('code '.length);
  // Older versions of npm have no rule about origins, and find no git.
  const rule = said.includes('spawn ENOTDIR') ? 'EALLOWGIT' : errorCode;
  const cause = CAUSES.find(({ codes }) => rule !== undefined && codes.test(rule));
  if (cause !== undefined) return { message: `${errorCode}: ${cause.describe(said)}`, hint: cause.hint };
  const [syscall = 'write', path] = ['syscall', 'path'].map((name) => {
    return said.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
  });
  const fault = fileErrorIn(Object.assign(new Error(), { code: errorCode, syscall, path }));
  if (fault !== undefined) return { message: fault.message, hint: fault.hint };
  const first = said.find((line) => !/^(?:code|syscall|errno|path|notarget) /.test(line));
  const reason = first?.replace(`Error: ${errorCode}: `, '').slice(0, MAX_REASON_CHARACTERS);
  const parts = [errorCode, reason].filter((part) => part !== undefined);
  return { message: parts.length === 0 ? `npm ended with code ${code}` : parts.join(': ') };
}

const MAX_REASON_CHARACTERS = 300;

interface Cause {
  readonly codes: RegExp;
  readonly describe: (said: readonly string[]) => string;
  readonly hint: string;
}

const CAUSES: readonly Cause[] = [
  {
    codes: /^EALLOW(?:GIT|REMOTE|FILE|DIRECTORY)$/,
    describe: () => 'the package needs another one from elsewhere than from the registry',
    hint: FOREIGN,
  },
  {
    codes: /^E404$/,
    describe: (said) => {
      const name = quoted(said, /'([^']+?)(?:@\*)?' (?:could not be found|is not in)/);
      return `the registry has no package${name}, or hides it from you`;
    },
    hint: 'correct the name; if the package is private, set the registry of its scope in your .npmrc and run `npm login`',
  },
  {
    codes: /^(?:ETARGET|ENOVERSIONS)$/,
    describe: (said) =>
      `the registry has no version${quoted(said, /No (?:matching version|versions).* for (\S+?)\.?$/)}`,
    hint: 'correct the version; `npm view NAME versions` lists those that exist',
  },
  {
    codes: /^(?:E401|E403|ENEEDAUTH|EOTP)$/,
    describe: () => 'the registry refused access',
    hint: 'run `npm login`, or correct the token in your .npmrc; if the registry blocks this package, ask its operator',
  },
  {
    codes: ERROR_SIGNS.certificate.npmCode,
    describe: () => 'npm does not trust the certificate of the registry',
    hint: 'set NODE_EXTRA_CA_CERTS, or `cafile` in your .npmrc, to the file of your certificate authority',
  },
  {
    codes: ERROR_SIGNS.network.npmCode,
    describe: () => 'the registry cannot be reached',
    hint: 'check the network connection, and `registry` and `proxy` in your .npmrc',
  },
  {
    codes: /^E(?:429|5\d\d)$/,
    describe: () => 'the registry has a problem',
    hint: 'try again later',
  },
];

/** The name of the package in an error of npm, as ` \`NAME\``. It can be a dependency. */
function quoted(said: readonly string[], pattern: RegExp): string {
  for (const line of said) {
    const [, name] = pattern.exec(line.slice(0, MAX_REASON_CHARACTERS)) ?? [];
    if (name !== undefined) return ` \`${name}\``;
  }
  return '';
}
