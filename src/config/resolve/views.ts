import { didYouMean, suggest } from '../../json/suggest.js';
import type { FileData, ServersKey } from '../file/checked-file.js';
import type { Config } from './config.js';

/** A name in the file that names nothing. */
export interface ViewFault {
  readonly path: (string | number)[];
  readonly message: string;
  readonly hint: string;
}

/** The servers and views that a checked file names in its views, and does not have. */
export function viewFaults({ views = {}, clients = {}, ...data }: FileData, root: ServersKey): ViewFault[] {
  const servers = Object.keys(data[root] ?? {});
  const ofViews = Object.entries(views).flatMap(([name, { servers: keys = [] }]) =>
    keys.flatMap((key, index) => {
      return servers.includes(key) ? [] : [fault(['views', name, 'servers', index], 'server', key, servers)];
    }),
  );
  const names = Object.keys(views);
  const ofClients = Object.entries(clients).flatMap(([client, view]) => {
    return names.includes(view) ? [] : [fault(['clients', client], 'view', view, names)];
  });
  return [...ofViews, ...ofClients];
}

function fault(path: ViewFault['path'], kind: 'server' | 'view', name: string, known: readonly string[]): ViewFault {
  const meant = suggest(name, known);
  const others = known.length === 0 ? `add it below \`${kind}s:\`` : `use one of: ${known.join(', ')}`;
  const hint = meant === undefined ? others : didYouMean(meant);
  return { path, message: `there is no ${kind} \`${name}\``, hint };
}

/** Whether clients of this view see the server. Without a view, they see every server; in an unknown one, none. */
export function isInView(
  { gateway: { views } }: Pick<Config, 'gateway'>,
  key: string,
  view: string | undefined,
): boolean {
  if (view === undefined || view === '') return true;
  const found = views.find(({ name }) => name === view);
  return found !== undefined && (found.servers === undefined || found.servers.includes(key));
}
