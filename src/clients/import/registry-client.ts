import { errorCode, errorMessage } from '../../errors/error-text.js';
import { isRecord } from '../../json/is-record.js';

/** The official registry of MCP servers. */
const PUBLIC_REGISTRY = 'https://registry.modelcontextprotocol.io';

const TIMEOUT_MS = 15_000;
/** How many similar names are worth reading. */
const MAX_HITS = 20;

/** Why the registry gave no server, with the next step. */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** The name of a server in the registry, such as `io.github.user/server`, and not of a package. */
export function isRegistryName(text: string): boolean {
  return /^[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+\/[\w.-]+$/.test(text);
}

/** The latest version of a server, as the registry describes it. Throws a `RegistryError`. */
export async function fetchServer(name: string, address = PUBLIC_REGISTRY): Promise<Readonly<Record<string, unknown>>> {
  const answer = await get(`/v0.1/servers/${encodeURIComponent(name)}/versions/latest`, address);
  if (isRecord(answer) && isRecord(answer.server)) return answer.server;
  if (answer !== undefined) throw notUnderstood(address);
  const similar = await namesLike(name.split('/').at(-1) ?? name, address);
  const hint = similar.length === 0 ? 'check the name' : `similar ones are ${similar.join(', ')}`;
  throw new RegistryError(`the registry has no server \`${name}\``, hint);
}

async function namesLike(text: string, address: string): Promise<string[]> {
  const query = new URLSearchParams({ search: text, version: 'latest', limit: String(MAX_HITS) });
  const answer = await get(`/v0.1/servers?${query}`, address);
  if (!isRecord(answer) || !Array.isArray(answer.servers)) return [];
  return answer.servers.flatMap((hit: unknown) => {
    const server = isRecord(hit) ? hit.server : undefined;
    return isRecord(server) && typeof server.name === 'string' && isRegistryName(server.name) ? [server.name] : [];
  });
}

/** The parsed answer; undefined for 404. */
async function get(path: string, address: string): Promise<unknown> {
  const url = `${address.replace(/\/+$/, '')}${path}`;
  let response: Response;
  try {
    response = await fetch(url, { headers: { accept: 'application/json' }, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (response.ok) return (await response.json()) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError) throw notUnderstood(address);
    const cause = error instanceof Error ? error.cause : undefined;
    const reason =
      errorCode(cause) ?? (error instanceof TypeError ? errorMessage(cause ?? error) : errorMessage(error));
    throw new RegistryError(
      `the registry ${address} cannot be reached (${reason})`,
      'check your network and proxy, or name another registry with TRUNKLINE_REGISTRY_URL',
      { cause: error },
    );
  }
  if (response.status === 404) return undefined;
  throw new RegistryError(`the registry ${address} answered with status ${response.status}`, 'try again later');
}

function notUnderstood(address: string): RegistryError {
  return new RegistryError(`the answer of ${address} is not that of a registry`, 'check TRUNKLINE_REGISTRY_URL');
}
