import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { CLIENTS } from '../../../clients/files/client-table.js';
import { findServers } from '../../../clients/files/find-servers.js';
import type { ClientPlace, ClientSystem, FoundServers } from '../../../clients/files/found-server.js';
import { readServers } from '../../../clients/files/read-servers.js';
import { errorCode, errorMessage } from '../../../errors/error-text.js';
import { UsageError } from '../../../errors/usage-error.js';
import { didYouMean, suggest } from '../../../json/suggest.js';

/** The servers of all clients, of one client, of one file or of stdin (`-`). Throws a `UsageError`. */
export async function serversFrom(from: string | undefined, system: ClientSystem): Promise<FoundServers> {
  if (from === undefined) return await findServers(system);
  if (from === '-') return fromText(placeOf('stdin'), await readAll(process.stdin), 'stdin');
  if (CLIENTS.some(({ client }) => client === from)) {
    const { servers, unreadable } = await findServers(system);
    return {
      servers: servers.filter(({ place }) => place.client === from),
      unreadable: unreadable.filter(({ place }) => place.client === from),
    };
  }
  const file = resolve(from);
  const text = textOf(file, from);
  // The client says how its variables are written, and which folder its project is.
  const known = (await findServers(system)).servers.filter(({ place }) => place.file === file);
  return known.length > 0 ? { servers: known, unreadable: [] } : fromText(placeOf(file), text, from);
}

function fromText(place: ClientPlace, text: string, shown: string): FoundServers {
  try {
    return { servers: readServers(place, text), unreadable: [] };
  } catch (cause) {
    const hint = 'name a file with `mcpServers` or the like';
    throw new UsageError(`${shown} cannot be imported: ${errorMessage(cause)}`, hint, { cause });
  }
}

function textOf(file: string, from: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (/[\\/.]/.test(from)) {
      throw new UsageError(`the file ${from} cannot be read (${errorCode(cause) ?? 'unknown'})`, 'correct --from', {
        cause,
      });
    }
    const names = CLIENTS.map(({ client }) => client);
    const nearest = suggest(from, names);
    throw new UsageError(
      `there is no client \`${from}\`, and no such file`,
      nearest === undefined ? `clients are ${names.join(', ')}` : didYouMean(nearest),
      { cause },
    );
  }
}

/** A file in no usual place: its name and its folder say which client has written it. */
function placeOf(file: string): ClientPlace {
  const name = basename(file);
  const folder = basename(dirname(file));
  const ofClient = (client: string, scope: ClientPlace['scope']) => {
    const { title, format, path } = CLIENTS.find((each) => each.client === client) ?? CLIENT_UNKNOWN;
    return { client, title, scope, file, format, path };
  };
  if (name === 'claude_desktop_config.json') return ofClient('claude-desktop', 'user');
  if (name === '.mcp.json') return ofClient('claude-code', 'project');
  if (folder === '.vscode') return ofClient('vscode', 'project');
  if (folder === '.cursor') return ofClient('cursor', 'project');
  return { ...CLIENT_UNKNOWN, client: 'file', title: name, scope: 'user', file };
}

const CLIENT_UNKNOWN = { title: '', format: 'json', path: ['mcpServers'] } as const;
