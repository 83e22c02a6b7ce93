import cliTruncate from 'cli-truncate';
import { duration, plural } from '../../../gateway/status/status-text.js';
import { describeBytes } from '../../../json/describe-bytes.js';
import { printable } from '../../../json/printable.js';
import { type Cell, table } from '../../table.js';
import { type Look, paint, stateCell } from '../../terminal.js';
import type { WatchedServer, WatchState } from './watch-state.js';

const KEYS = '↑↓ choose  r restart  l log  a approve  q quit';
/** Title, empty line; note, keys. */
const FRAME_LINES = 4;
/** With less, the list of clients is left out. */
const MIN_SERVER_LINES = 4;

/** The lines of the screen: as many as it is high, none wider than it is. */
export function view(state: WatchState, width: number, height: number, isColored: boolean): string[] {
  const look: Look = { width, isColored };
  const free = height - FRAME_LINES;
  const wanted = state.servers.length + 1;
  const log = logLines(state, look);
  const forLog = Math.min(log.length, Math.max(Math.floor(free / 2), free - wanted - 1));
  const beside = log.length > 0 ? forLog + 1 : clientLines(state);
  const forServers = Math.min(wanted, free, Math.max(free - beside, log.length > 0 ? 2 : MIN_SERVER_LINES));
  const body = [...serverLines(state, forServers, look), ''];
  if (log.length > 0) body.push(...log.slice(0, 1), ...log.slice(1).slice(1 - forLog));
  else body.push(...clientTable(state, look).slice(0, Math.max(free - body.length, 0)));
  // On a very narrow terminal, a table is still too wide.
  const lines = [printable(titleOf(state)), '', ...fixed(body, free), printable(state.note)];
  const keys = paint(look, 'inverse', cliTruncate(KEYS, width).padEnd(width));
  return [...lines.map((line) => cliTruncate(line, width)), keys].slice(-height);
}

function titleOf({ hub, servers, clients }: WatchState): string {
  const counts = `${plural(servers.length, 'server')}, ${plural(clients.length, 'client')}`;
  const draining = hub.isDraining ? '; another hub serves from now on' : '';
  return `Trunkline ${hub.version}  hub ${hub.pid}, up ${duration(hub.uptimeSeconds)}  ${counts}${draining}  ${hub.configFile}`;
}

/** The table of servers in so many lines, with the chosen server among them. */
function serverLines({ servers, chosen }: WatchState, height: number, look: Look): string[] {
  const rows = servers.map((server) => serverRow(server, server.key === chosen, look));
  const head = ['', 'SERVER', 'STATE', 'CALLS/S', 'P50', 'MEMORY', 'LAST ERROR'];
  const [title = '', ...lines] = table([head, ...rows], look).split('\n');
  const visible = Math.max(height - 1, 1);
  const at = servers.findIndex(({ key }) => key === chosen);
  const first = Math.min(Math.max(at - Math.floor(visible / 2), 0), Math.max(lines.length - visible, 0));
  return [title, ...lines.slice(first, first + visible)];
}

function serverRow(server: WatchedServer, isChosen: boolean, look: Look): Cell[] {
  const { key, state, callsPerSecond, p50Ms, memoryBytes, lastError } = server;
  return [
    isChosen ? '>' : ' ',
    isChosen ? { text: key, format: 'inverse' } : { text: key, format: undefined },
    stateCell(state, look),
    callsPerSecond === null ? UNKNOWN : callsPerSecond.toFixed(1),
    p50Ms === null ? UNKNOWN : `${p50Ms} ms`,
    memoryBytes === null ? UNKNOWN : describeBytes(memoryBytes),
    { text: lastError, format: 'red' },
  ];
}

const UNKNOWN = '-';

function clientLines({ clients }: WatchState): number {
  return clients.length + 2;
}

function clientTable({ clients }: WatchState, look: Look): string[] {
  const rows = clients.map(({ name, version, pid, uptimeSeconds, inFlight }): Cell[] => [
    name ?? '(has not introduced itself)',
    ...[version ?? UNKNOWN, String(pid), duration(uptimeSeconds), String(inFlight)],
  ]);
  return table([['CLIENT', 'VERSION', 'PID', 'ATTACHED FOR', 'IN FLIGHT'], ...rows], look).split('\n');
}

/** A heading and the last output of the chosen server; nothing if it is not shown. */
function logLines({ log }: WatchState, look: Look): string[] {
  if (log === undefined) return [];
  const lines = log.lines.length === 0 ? ['(nothing was written yet)'] : log.lines;
  const heading = paint(look, 'bold', cliTruncate(`The last output of ${log.server}:`, look.width ?? 0));
  return [heading, ...lines.map((line) => cliTruncate(`  ${printable(line)}`, look.width ?? 0))];
}

function fixed(lines: readonly string[], height: number): string[] {
  return Array.from({ length: Math.max(height, 0) }, (_, at) => lines[at] ?? '');
}
