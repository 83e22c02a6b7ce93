import { dirname } from 'node:path';
import { valueAt } from '../../../host/files/edit/edit-text.js';
import { FileRefusal, parseText } from '../../../host/files/edit/parse-text.js';
import { readRegularFile } from '../../../host/files/whole-file.js';
import { isRecord } from '../../../wire/json/json-value.js';
import { MAX_FILE_BYTES } from './client-file.js';
import { clientLocations } from './client-locations.js';
import { findDesktopExtensions } from './desktop-extensions.js';
import type { ClientLocation, ClientSystem, FoundServer, FoundServers, UnreadableLocation } from './found-server.js';
import { serversIn } from './read-servers.js';

/** The servers in the files of all clients. Reports files that cannot be read, and never throws. */
export async function findServers(system: ClientSystem): Promise<FoundServers> {
  const placesOfFile = new Map<string, ClientLocation[]>();
  for (const place of clientLocations(system)) {
    placesOfFile.set(place.file, [...(placesOfFile.get(place.file) ?? []), place]);
  }
  const servers: FoundServer[] = [];
  const unreadable: UnreadableLocation[] = [];
  let claudeProjects: unknown;
  for (const [file, places] of placesOfFile) {
    const [place] = places;
    const found = await readRegularFile(file, { maxBytes: MAX_FILE_BYTES, followsLinks: true });
    if (place === undefined || found.kind === 'absent') continue;
    if (found.kind === 'unusable') {
      unreadable.push({ place, because: found.reason });
      continue;
    }
    try {
      const data = parseText(place.format, found.bytes.toString());
      if (place.client === 'claude-code' && place.scope === 'user') claudeProjects = valueAt(data, ['projects']);
      servers.push(...[...places, ...localLocations(place, data)].flatMap((each) => serversIn(each, data)));
    } catch (error) {
      unreadable.push({ place, because: error instanceof FileRefusal ? error.message : 'it cannot be understood' });
    }
  }
  const extensions = await findDesktopExtensions(system);
  return {
    servers: [...servers.map((server) => switchedOff(server, claudeProjects)), ...extensions.servers],
    unreadable: [...unreadable, ...extensions.unreadable],
  };
}

/** Marks a server as disabled if the file of the user has it in the list of disabled servers of its project, as Claude Code writes it. */
function switchedOff(server: FoundServer, projects: unknown): FoundServer {
  const { place, name } = server;
  if (place.client !== 'claude-code' || place.scope === 'user') return server;
  const isLocal = place.scope === 'local';
  const folder = isLocal ? (place.path[1] ?? '') : dirname(place.file);
  const list = valueAt(projects, [folder, isLocal ? 'disabledMcpServers' : 'disabledMcpjsonServers']);
  return Array.isArray(list) && list.includes(name) ? { ...server, isDisabled: true } : server;
}

/** Returns the locations of servers that are local to a project. Claude Code keeps them in the file of the user. */
function localLocations(place: ClientLocation, data: unknown): ClientLocation[] {
  if (place.client !== 'claude-code' || place.scope !== 'user') return [];
  const projects = valueAt(data, ['projects']);
  if (!isRecord(projects)) return [];
  return Object.keys(projects).map((folder) => {
    return { ...place, scope: 'local', path: ['projects', folder, 'mcpServers'] };
  });
}
