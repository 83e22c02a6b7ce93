import {
  cpSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ServerConfig } from '../../../config/resolve/config.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import type { Trial } from '../../../servers/sandbox/confined-launch.js';
import { isWithin, type Opening, type Policy } from '../../../servers/sandbox/policy.js';
import { proxyRemark, quoted } from '../../../servers/sandbox/refusals.js';
import { type ChildSpec, programOf, type SandboxSpec } from '../../../spec/server-spec.js';
import { outputOf } from '../../../status/verdict.js';
import type { Invocation } from '../../command.js';
import { print, printJson, tell } from '../../output.js';
import { tryTool } from '../calls/call-alone.js';
import { chooseServers, examine, type Once, runOnce } from '../calls/run-once.js';

/** Most entries and bytes of a folder that are copied for a trial. A larger one is opened for reading instead. */
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 256 * 1024 * 1024;

interface Tried {
  readonly key: string;
  readonly tool: string | undefined;
  readonly args: readonly string[];
}

/**
 * `trunkline sandbox SERVER --try`: starts the server once, with all names of the network allowed and with copies of the
 * files that its entry names, and proposes an entry from what it used.
 */
export async function sandboxTrial({ settings, isJson }: Invocation, tried: Tried): Promise<number> {
  const { key } = tried;
  const folder = mkdtempSync(join(tmpdir(), 'trunkline-trial-'));
  try {
    const files = new TrialFiles(folder);
    const names = new Set<string>();
    const trial: Trial = {
      scratch: files.root,
      policy: (policy) => files.copyInto(policy),
      onUsed: (target) => names.add(target),
    };
    let found: Proposal | undefined;
    let remark: string | undefined;
    const code = await runOnce(
      settings,
      (config) => chooseServers(config, [key]).map((server) => ({ ...server, spec: confinableOf(server) })),
      async (once) => {
        const isWorking = await use(once, tried);
        const [server] = once.config.servers;
        remark = server && proxyRemark(confinableOf(server), true);
        found = { names: [...names].sort(), ...files.used() };
        return isWorking ? EXIT.ok : EXIT.failed;
      },
      { isReview: true, trial },
    );
    if (found !== undefined) await report(key, found, isJson);
    if (remark !== undefined && !isJson) tell(remark);
    return code;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Proposal {
  readonly names: readonly string[];
  readonly read: readonly string[];
  readonly write: readonly string[];
  /** Files that were too large to copy. */
  readonly uncopied: readonly string[];
}

/** Whether the server started and, if a tool was named, the tool succeeded. */
async function use(once: Once, { key, tool, args }: Tried): Promise<boolean> {
  const [tried] = examine(once);
  if (tried?.fault !== undefined && tried.report.state !== 'ready') {
    tell(`It did not start: ${tried.fault.reason}`);
    for (const line of outputOf(tried.report)) tell(`  | ${line}`);
    return false;
  }
  if (tool === undefined) return true;
  return await tryTool(once, tool.startsWith(`${key}.`) ? tool : `${key}.${tool}`, args);
}

async function report(key: string, { names, read, write, uncopied }: Proposal, isJson: boolean): Promise<void> {
  const parts = [
    ...(read.length === 0 ? [] : [`read: [${read.map(short).join(', ')}]`]),
    ...(write.length === 0 ? [] : [`write: [${write.map(short).join(', ')}]`]),
    ...(names.length === 0 ? [] : [`network: [${names.map(quoted).join(', ')}]`]),
  ];
  const entry = parts.length === 0 ? 'sandbox: true' : `sandbox: { ${parts.join(', ')} }`;
  if (isJson) {
    await printJson({ server: key, read, write, network: names, entry });
    return;
  }
  tell(`This entry of ${key} allows what it used in the trial, and nothing else:`);
  await print(`    ${entry}`);
  for (const path of uncopied) tell(`${path} is too large to copy, so the trial could only read it.`);
  tell('Tools that the trial did not call may need more: name one after `--try` to call it in the trial.');
}

type Confinable = ChildSpec & { readonly sandbox: SandboxSpec };

/** The program of a server, as it would be confined. Throws a `UsageError` if the server has none, or cannot run. */
export function confinableOf(server: ServerConfig): Confinable {
  const spec = programOf(server);
  const { key, problem } = server;
  if (problem !== undefined) throw new UsageError(problem.message, problem.hint);
  if (spec === undefined)
    throw new UsageError(`${key} is behind a URL, so it has no program to confine`, 'only programs can be confined');
  if (spec.missing !== undefined)
    throw new UsageError(`the package of ${key} is not installed yet`, `run: trunkline install ${key}`);
  const nothing = { server: key, read: [], write: [], network: [], unixSockets: false, opensFolder: false };
  return { ...spec, sandbox: spec.sandbox ?? nothing };
}

/** A path of the home folder with `~`, as a YAML value. */
function short(path: string): string {
  const home = homedir();
  return path !== home && isWithin(path, home) ? `~${path.slice(home.length)}` : quoted(path);
}

/** A copy of a file or folder, with the sizes and times of all its entries before the trial. */
interface Copy {
  readonly path: string;
  readonly copy: string;
  readonly before: ReadonlyMap<string, string>;
}

/** The files of a trial: copies of those that the entry names, and what the server writes. */
class TrialFiles {
  readonly root: string;
  readonly #folder: string;
  readonly #copies: Copy[] = [];
  readonly #uncopied: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
    this.root = join(folder, 'root');
    mkdirSync(this.root);
  }

  /** The policy for the trial: with a new home folder, and with copies. */
  copyInto(policy: Policy): Policy {
    const writable = policy.openings.filter(({ access }) => access === 'write').map(({ path }) => path);
    const copied = [...writable, ...policy.proposed].map((path) => this.#copy(path));
    const kept = policy.openings.filter(({ access }) => access === 'read');
    return { ...policy, ownHome: join(this.#folder, 'home'), openings: [...kept, ...copied] };
  }

  #copy(path: string): Opening {
    if (!isSmall(path)) {
      this.#uncopied.push(path);
      return { path, access: 'read', because: 'too large to copy' };
    }
    const copy = join(this.#folder, `copy-${this.#copies.length}`);
    cpSync(path, copy, { recursive: true, verbatimSymlinks: true });
    const files = [...walk(copy)];
    // The time of access shows later whether a file was read.
    for (const file of files) forgetAccess(file);
    this.#copies.push({ path, copy, before: stampsOf(files) });
    return { path, access: 'write', because: 'a copy for the trial', source: copy };
  }

  used() {
    const wasRead = (file: string) => (lstatSync(file, { throwIfNoEntry: false })?.atimeMs ?? 0) > 0;
    const tellsAccess = this.#tellsAccess();
    const read = this.#copies.filter(({ before }) => !tellsAccess || [...before.keys()].some(wasRead));
    const written = this.#copies.filter(({ copy, before }) => !isDeepStrictEqual(stampsOf([...walk(copy)]), before));
    const others = [...walk(this.root)].filter((file) => lstatSync(file).isFile() && lstatSync(file).size > 0);
    const elsewhere = new Set(others.map((file) => dirname(file).slice(this.root.length)).filter(Boolean));
    return {
      read: [...read.filter((copy) => !written.includes(copy)).map(({ path }) => path), ...this.#uncopied],
      write: [...written.map(({ path }) => path), ...elsewhere],
      uncopied: this.#uncopied,
    };
  }

  /** Whether the file system records times of access. */
  #tellsAccess(): boolean {
    const file = join(this.#folder, 'probe');
    writeFileSync(file, 'x');
    forgetAccess(file);
    readFileSync(file);
    return lstatSync(file).atimeMs > 0;
  }
}

function forgetAccess(file: string): void {
  lutimesSync(file, 0, lstatSync(file).mtime);
}

function isSmall(path: string): boolean {
  let entries = 0;
  let bytes = 0;
  for (const file of walk(path)) {
    entries += 1;
    bytes += lstatSync(file).size;
    if (entries > MAX_ENTRIES || bytes > MAX_BYTES) return false;
  }
  return true;
}

/** The size and the time of change of each entry. A folder changes with its list. */
function stampsOf(files: readonly string[]): ReadonlyMap<string, string> {
  const stampOf = (file: string) => {
    const { size, mtimeMs } = lstatSync(file);
    return `${size} ${mtimeMs}`;
  };
  return new Map(files.map((file) => [file, stampOf(file)]));
}

/** A file or folder, and everything in it. */
function* walk(path: string): Generator<string> {
  yield path;
  if (!lstatSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) yield* walk(join(path, name));
}
