import { type ReadFile, readRegularFile } from '../files/regular-file.js';
import { isRecord } from '../json/is-record.js';
import { clientPlaces } from './client-places.js';
import type { ClientPlace, ClientSystem, FoundServer, FoundServers, UnreadablePlace } from './found-server.js';
import { parseFile } from './parse-file.js';
import { serversIn, valueAt } from './read-servers.js';

/** Claude Code keeps the history of all projects in its file. */
const MAX_FILE_BYTES = 64 * 1024 * 1024;

/** Reads a client's file: whoever calls this decides what each outcome means. */
export function readClientFile(file: string): Promise<ReadFile> {
  return readRegularFile(file, { maxBytes: MAX_FILE_BYTES, followsLinks: true });
}

/** The servers in the files of all clients. A file that cannot be read is reported, and never an error. */
export async function findServers(system: ClientSystem): Promise<FoundServers> {
  const placesOfFile = new Map<string, ClientPlace[]>();
  for (const place of clientPlaces(system)) {
    placesOfFile.set(place.file, [...(placesOfFile.get(place.file) ?? []), place]);
  }
  const servers: FoundServer[] = [];
  const unreadable: UnreadablePlace[] = [];
  for (const [file, places] of placesOfFile) {
    const [place] = places;
    const found = await readClientFile(file);
    if (place === undefined || found.kind === 'absent') continue;
    if (found.kind === 'unusable') {
      unreadable.push({ place, because: found.reason });
      continue;
    }
    try {
      const data = parseFile(place.format, found.bytes.toString());
      servers.push(...[...places, ...localPlaces(place, data)].flatMap((each) => serversIn(each, data)));
    } catch (error) {
      unreadable.push({ place, because: error instanceof Error ? error.message : String(error) });
    }
  }
  return { servers, unreadable };
}

/** Claude Code keeps the servers that are local to a project in the file of the user. */
function localPlaces(place: ClientPlace, data: unknown): ClientPlace[] {
  if (place.client !== 'claude-code' || place.scope !== 'user') return [];
  const projects = valueAt(data, ['projects']);
  if (!isRecord(projects)) return [];
  return Object.keys(projects).map((folder) => {
    return { ...place, scope: 'local', path: ['projects', folder, 'mcpServers'] };
  });
}
