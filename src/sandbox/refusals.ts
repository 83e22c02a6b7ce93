import { printable } from '../json/printable.js';
import type { ChildSpec, SandboxSpec } from '../supervision/launcher.js';

/** A name to which a server was refused connections. */
export interface Refusal {
  /** The name, and the port if it is not a usual one. Text of the server, made printable. */
  readonly target: string;
  /** The reason, as a clause. */
  readonly reason: string;
  /** The YAML that would allow it. Absent if no entry would. */
  readonly allowedBy?: string | undefined;
  /** Time of the latest refusal, in milliseconds on the clock of the caller. */
  readonly at: number;
}

/** Most names that are kept for one server. */
const MAX_TARGETS = 20;

/** The names to which confined servers were refused connections, by server and user. */
export class Refusals {
  readonly #byOwner = new Map<string, Map<string, Refusal>>();

  /** Notes a refusal. Returns it if the name is new. */
  note(sandbox: SandboxSpec, { target, reason, at }: Omit<Refusal, 'allowedBy'>): Refusal | undefined {
    const owner = ownerOf(sandbox);
    const known = this.#byOwner.get(owner) ?? new Map<string, Refusal>();
    this.#byOwner.set(owner, known);
    const shown = printable(target);
    const isNew = !known.has(shown);
    if (isNew && known.size >= MAX_TARGETS) return undefined;
    const allowedBy =
      isListable(shown) && !reason.startsWith('it resolved') ? networkLine(sandbox, [shown]) : undefined;
    const refusal = { target: shown, reason: printable(reason), allowedBy, at };
    known.set(shown, refusal);
    return isNew ? refusal : undefined;
  }

  of(sandbox: SandboxSpec): readonly Refusal[] {
    return [...(this.#byOwner.get(ownerOf(sandbox))?.values() ?? [])];
  }

  /** A sentence about what was refused to the server since a time; `undefined` if nothing was. */
  since(sandbox: SandboxSpec, at: number): string | undefined {
    const recent = this.of(sandbox).filter((refusal) => refusal.at >= at);
    return recent.length === 0 ? undefined : recent.map(describeRefusal).join(' ');
  }
}

function ownerOf({ server, user }: SandboxSpec): string {
  return JSON.stringify([server, user ?? null]);
}

/** A sentence about a refusal, with the YAML that would allow it. */
export function describeRefusal({ target, reason, allowedBy }: Refusal): string {
  const how = allowedBy === undefined ? `: ${reason}.` : `; \`${allowedBy}\` in the server's entry would allow it.`;
  return `The sandbox refused the server a connection to ${target}${how}`;
}

/** The part of an entry that allows further names. */
function networkLine({ read, write, network, unixSockets }: SandboxSpec, more: readonly string[]): string {
  const line = `network: [${[...new Set([...network, ...more])].map(quoted).join(', ')}]`;
  return read.length + write.length > 0 || unixSockets ? line : `sandbox: { ${line} }`;
}

/** A name or a path as a YAML value within brackets. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_./-][A-Za-z0-9_./ -]*$/.test(text) && !text.endsWith(' ') ? text : JSON.stringify(text);
}

function isListable(target: string): boolean {
  return /^(?:[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d+)?$/.test(target);
}

/**
 * A remark about a confined server that may use the network, if its Node is too old to send `fetch` through a proxy. Node is
 * the program of packages and of `node` in PATH, which is the Node that runs Trunkline.
 */
export function proxyRemark({ command }: Pick<ChildSpec, 'command'>, usesNetwork: boolean): string | undefined {
  const { execPath, versions } = process;
  const runsNode = command === execPath || /^(?:node|npx|npm)$/.test(command);
  if (!usesNetwork || !runsNode || followsProxies(versions.node)) return undefined;
  return `\`fetch\` of its Node ${versions.node} ignores the proxy through which the sandbox lets it out: run it with Node 22.21 or newer, or 24.`;
}

/** Whether `fetch` of this version of Node uses the proxy of the environment with `NODE_USE_ENV_PROXY`. */
export function followsProxies(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major >= 24 || (major === 22 && minor >= 21);
}
