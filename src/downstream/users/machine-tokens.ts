import { createHash } from 'node:crypto';
import { UsageError } from '../../host/errors/usage-error.js';
import { fileState, readRegularFileSync } from '../../host/files/whole-file.js';
import type { User } from '../port.js';

interface MachineTokensOptions {
  readonly file: string;
  /** Called with the reason when a changed file cannot be used. The machines of the previous file stay. */
  readonly onFault: (fault: string) => void;
}

/** Shortest time in milliseconds between two looks at the file. */
const LOOK_EVERY_MS = 1_000;
const MAX_FILE_BYTES = 1024 * 1024;
/** A name, which is also the name of a folder, the SHA-256 of a token, and groups between commas. */
const LINE = /^([a-z0-9][a-z0-9._-]{0,62})[ \t]+([0-9a-f]{64})(?:[ \t]+([^\s,]+(?:,[^\s,]+)*))?$/i;

/**
 * The machines that have a token of their own. The file has only the hashes of the tokens, so a reader of the file cannot
 * use the tokens. A changed file applies to the next request.
 */
export class MachineTokens {
  readonly #options: MachineTokensOptions;
  #machines: ReadonlyMap<string, User>;
  #stamp: string | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** Throws an error for a file that cannot be used. */
  constructor(options: MachineTokensOptions) {
    this.#options = options;
    this.#stamp = fileState(options.file);
    this.#machines = machinesIn(readTokenFile(options.file) ?? absent(options.file), options.file);
  }

  /** The machine whose token has this SHA-256, in hexadecimal digits. `now` is in milliseconds on the clock. */
  find(hash: string, now: number): User | undefined {
    if (now - this.#lookedAt >= LOOK_EVERY_MS) this.#look(now);
    return this.#machines.get(hash);
  }

  #look(now: number): void {
    const { file, onFault } = this.#options;
    this.#lookedAt = now;
    const stamp = fileState(file);
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    try {
      this.#machines = machinesIn(readTokenFile(file) ?? absent(file), file);
    } catch (error) {
      onFault(error instanceof Error ? error.message : String(error));
    }
  }
}

/**
 * Reads the text of a token file; `undefined` if there is none. Symbolic links are allowed, because Kubernetes mounts secrets
 * with them. Throws a `UsageError` for a file that cannot be used.
 */
export function readTokenFile(file: string): string | undefined {
  const found = readRegularFileSync(file, { maxBytes: MAX_FILE_BYTES, followsLinks: true, isGuarded: true });
  if (found.kind === 'absent') return undefined;
  if (found.kind === 'read') return found.bytes.toString();
  throw unusable(`the file ${file} of \`auth.tokens\` cannot be used: ${found.reason}`);
}

function absent(file: string): never {
  throw unusable(`the file ${file} of \`auth.tokens\` does not exist; \`trunkline token add NAME\` makes it`);
}

function unusable(message: string): UsageError {
  return new UsageError(message, 'correct the file, or `gateway.http.auth.tokens` in the configuration');
}

interface NewToken {
  readonly name: string;
  /** SHA-256 in hexadecimal digits. */
  readonly hash: string;
  readonly groups: readonly string[];
}

/** Returns the text of a token file with a line for another token. Throws a `UsageError` for a wrong name, group or text. */
export function withToken(text: string, file: string, { name, hash, groups }: NewToken): string {
  const line = [name, hash, ...(groups.length === 0 ? [] : [groups.join(',')])].join(' ');
  if (!LINE.test(line) || name !== name.toLowerCase()) {
    const hint = 'a name has up to 63 small letters, digits, `.`, `_` and `-`; a group has no space and no comma';
    throw new UsageError(`\`${[name, ...groups].join(' ')}\` cannot be written into ${file}`, hint);
  }
  const before = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  machinesIn(before, file);
  return `${before}${line}\n`;
}

/** Returns the text without the lines of a machine, or without all but its last line, and the number of lines that are gone. */
export function withoutTokens(text: string, file: string, name: string, isLastKept: boolean) {
  machinesIn(text, file);
  const lines = text.split('\n');
  const own = lines.flatMap((line, at) => (LINE.exec(line.trim())?.[1] === name ? [at] : []));
  const gone = new Set(isLastKept ? own.slice(0, -1) : own);
  return { text: lines.filter((_, at) => !gone.has(at)).join('\n'), count: gone.size };
}

/** The machines of a token file, one for each token, in its order. Throws a `UsageError` for a text with a mistake. */
export function machinesIn(text: string, file: string): ReadonlyMap<string, User> {
  const machines = new Map<string, User>();
  for (const [at, each] of text.split('\n').entries()) {
    const line = each.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, name = '', hash = '', groups] = LINE.exec(line) ?? [];
    const key = hash.toLowerCase();
    const fault = faultOf(name, machines.get(key)?.name);
    if (fault !== undefined) throw unusable(`line ${at + 1} of ${file} ${fault}`);
    machines.set(key, { principal: principalOf(name), name, kind: 'machine', groups: groups?.split(',') ?? [] });
  }
  return machines;
}

function faultOf(name: string, other: string | undefined): string | undefined {
  if (name === '') return 'is not `NAME SHA256 GROUPS`, such as `ci 9f86…0a08 builders,readers`';
  if (name !== name.toLowerCase()) return `has a name with capital letters, ${name}`;
  return other === undefined ? undefined : `has the token of another line, of ${other}`;
}

/** Identifies a machine. Begins with a character that no issuer contains, so no user has the same principal. */
function principalOf(name: string): string {
  return createHash('sha256').update(`\0machine\0${name}`).digest('hex');
}
