import { isRecord } from '../json/is-record.js';
import { ServerFault } from './server-fault.js';

const REMOTE_TYPES = new Set<unknown>(['http', 'sse', 'streamable-http', 'streamableHttp', 'ws', 'websocket']);

/** The keys of remote servers, which have a URL instead of a program, in a file that is not checked yet. */
export function remoteKeys(file: unknown, root: string): ReadonlySet<string> {
  const remote = entriesOf(file, root).filter(([, entry]) => isRemote(entry));
  return new Set(remote.map(([key]) => key));
}

/**
 * Returns the file with each remote entry replaced by an entry that passes the schema.
 *
 * Other programs define additional keys for remote entries, which are not mistakes here. The keys of the servers stay,
 * so that they are checked like all others.
 */
export function withStandIns(file: unknown, root: string): unknown {
  const entries = entriesOf(file, root);
  if (!isRecord(file) || entries.length === 0) return file;
  const checked = entries.map(([key, entry]) => [key, isRemote(entry) ? standIn(entry) : entry] as const);
  return { ...file, [root]: Object.fromEntries(checked) };
}

export function remoteFault(): ServerFault {
  return new ServerFault(
    'remote servers are not supported yet; expected `package` or `command`',
    'set `disabled: true` to ignore this server, or use `command` to run a local bridge to the URL',
  );
}

type RemoteEntry = Readonly<Record<string, unknown>>;

function entriesOf(file: unknown, root: string): [string, unknown][] {
  if (!isRecord(file) || !Object.hasOwn(file, root) || !isRecord(file[root])) return [];
  return Object.entries(file[root]);
}

function isRemote(entry: unknown): entry is RemoteEntry {
  if (!isRecord(entry)) return false;
  return Object.hasOwn(entry, 'url') || (Object.hasOwn(entry, 'type') && REMOTE_TYPES.has(entry.type));
}

function standIn(entry: RemoteEntry) {
  return { command: 'remote', disabled: Object.hasOwn(entry, 'disabled') && entry.disabled === true };
}
