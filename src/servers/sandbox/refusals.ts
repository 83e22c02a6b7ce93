import type { ChildSpec, SandboxSpec } from '../../spec/server-spec.js';
import { printable } from '../../wire/json/printable.js';

/** A host name to which the sandbox refused a connection, or a file that the server could not write. */
export interface SandboxRefusal {
  readonly kind: 'connection' | 'write';
  /** The file, or the host name with a port that is not 80 or 443. Text of the server, made printable. */
  readonly target: string;
  /** The reason, as a clause. */
  readonly reason: string;
  /** The YAML that would allow it. Absent if no entry would. */
  readonly allowedBy?: string | undefined;
  /** Time of the latest refusal, in milliseconds on the clock of the caller. */
  readonly at: number;
}

/** Limit of the host names and files that are kept for one server and user. */
const MAX_TARGETS = 20;

/** Host names and files that the sandbox refused, by server and user. */
export class Refusals {
  readonly #byOwner = new Map<string, Map<string, SandboxRefusal>>();

  /** Notes a refusal. Returns it if the name is new. */
  note(
    sandbox: SandboxSpec,
    { target, reason, at }: { readonly target: string; readonly reason: string; readonly at: number },
  ): SandboxRefusal | undefined {
    const shown = printable(target);
    const allowedBy =
      isListable(shown) && !reason.startsWith('it resolved') ? entryWith(sandbox, 'network', shown) : undefined;
    return this.#keep(sandbox, { kind: 'connection', target: shown, reason: printable(reason), allowedBy, at });
  }

  /**
   * Notes the file in an error about a read-only file system, because each folder that is not open for writing is read-only for a
   * confined server. The operating system reports no such file, so the server's own error is the only source.
   */
  noteWrite(sandbox: SandboxSpec, error: string, at: number): void {
    const [, folder, name = ''] = UNWRITABLE.exec(error) ?? [];
    if (folder === undefined) return;
    const target = `${folder}/${name}`;
    const reason = 'its folder is not open for writing';
    this.#keep(sandbox, { kind: 'write', target, reason, allowedBy: entryWith(sandbox, 'write', folder), at });
  }

  #keep(sandbox: SandboxSpec, refusal: SandboxRefusal): SandboxRefusal | undefined {
    const owner = ownerOf(sandbox);
    const known = this.#byOwner.get(owner) ?? new Map<string, SandboxRefusal>();
    this.#byOwner.set(owner, known);
    const isNew = !known.has(refusal.target);
    if (isNew && known.size >= MAX_TARGETS) return undefined;
    known.set(refusal.target, refusal);
    return isNew ? refusal : undefined;
  }

  of(sandbox: SandboxSpec): readonly SandboxRefusal[] {
    return [...(this.#byOwner.get(ownerOf(sandbox))?.values() ?? [])];
  }

  /** Returns a sentence about the refusals since a time; `undefined` if there were none. */
  since(sandbox: SandboxSpec, at: number): string | undefined {
    const recent = this.of(sandbox).filter((refusal) => refusal.at >= at);
    return recent.length === 0 ? undefined : recent.map(describeSandboxRefusal).join(' ');
  }
}

function ownerOf({ server, user }: SandboxSpec): string {
  return JSON.stringify([server, user ?? null]);
}

/** A sentence about a refusal, with the YAML that would allow it. */
export function describeSandboxRefusal({ kind, target, reason, allowedBy }: SandboxRefusal): string {
  const how = allowedBy === undefined ? `: ${reason}.` : `; \`${allowedBy}\` in the server's entry would allow it.`;
  if (kind === 'write')
    return `The sandbox did not let the server write ${target}, as the server reports; \`${allowedBy}\` in its entry would open the folder.`;
  return `The sandbox refused the server a connection to ${target}${how}`;
}

/** The part of an entry that allows a further name or folder. */
function entryWith({ unixSockets, ...sandbox }: SandboxSpec, setting: 'network' | 'write', more: string): string {
  const line = `${setting}: [${[...new Set([...sandbox[setting], more])].map(quoted).join(', ')}]`;
  const others = (['read', 'write', 'network'] as const).filter((name) => name !== setting);
  return unixSockets || others.some((name) => sandbox[name].length > 0) ? line : `sandbox: { ${line} }`;
}

/** A file that cannot be written, in the words of Node and Python. The text may be part of a JSON text. */
const UNWRITABLE =
  /\b(?:EROFS|Read-only file system)\b[^'"]{0,200}['"](\/[\w ./@+-]{1,500})\/([^/'"\\]{1,200})\\?['"]/i;

/** A name or a path as a YAML value within brackets. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_./-][A-Za-z0-9_./ -]*$/.test(text) && !text.endsWith(' ') ? text : JSON.stringify(text);
}

function isListable(target: string): boolean {
  return /^(?:[A-Za-z0-9_][\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d+)?$/.test(target);
}

/**
 * A remark about a confined server that may use the network, if its Node is too old to send `fetch` through a proxy. A package,
 * and a server whose command is `node`, `npx` or `npm`, is taken to run with the Node that runs Trunkline.
 */
export function proxyRemark({ command }: ChildSpec, usesNetwork: boolean): string | undefined {
  const { execPath, versions } = process;
  const runsNode = command === execPath || /^(?:node|npx|npm)$/.test(command);
  if (!usesNetwork || !runsNode || followsProxies(versions.node)) return undefined;
  return `Node ${versions.node}, which runs the server, does not send \`fetch\` through the proxy of the sandbox: run the server with Node 22.21 or newer, or 24.`;
}

/** Whether `fetch` of this version of Node uses the proxy of the environment with `NODE_USE_ENV_PROXY`. */
export function followsProxies(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major >= 24 || (major === 22 && minor >= 21);
}
