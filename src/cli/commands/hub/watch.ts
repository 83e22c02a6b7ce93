import { emitKeypressEvents } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import cliTruncate from 'cli-truncate';
import { errorMessage } from '../../../host/errors/error-text.js';
import { END_SIGNALS, EXIT } from '../../../host/errors/usage-error.js';
import type { ClientDescription, HubDescription } from '../../../hub/control.js';
import type { ServerReport, StatusReport } from '../../../status/status.js';
import { duration } from '../../../status/status-text.js';
import { describeBytes, plural, printable } from '../../../wire/json/printable.js';
import { type Cell, type Look, lookOf, paint, stateCell, table } from '../../terminal.js';
import { clientName, UNKNOWN } from './hub-access.js';

export interface WatchTerminalOptions {
  readonly input: ReadStream;
  readonly output: WriteStream;
  readonly readFacts: () => Promise<WatchFacts>;
  readonly readLog: (server: string) => Promise<readonly string[]>;
  readonly restart: (server: string) => Promise<void>;
  /** Resolves when the hub has ended. */
  readonly hubEnded: Promise<void>;
}

const LOOK_EVERY_MS = 1_000;

/** Alternate screen of the terminal, without a cursor. At the end, the terminal shows its earlier content again. */
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
/** Synchronized output: terminals that support it show all lines at once. */
const BEGIN = '\x1b[?2026h\x1b[H';
const END = '\x1b[J\x1b[?2026l';
const CTRL_C_CODE = 130;

/** Shows the state of the hub until `q`, Ctrl-C or the end of the hub. Returns the exit code; restores the terminal. */
export async function watchInTerminal(options: WatchTerminalOptions): Promise<number> {
  const { input, output } = options;
  const screen = new WatchScreen(options);
  const restore = () => {
    output.write(LEAVE);
    input.setRawMode(false);
  };
  emitKeypressEvents(input as ReadStream);
  output.write(ENTER);
  input.setRawMode(true);
  // Restores the terminal even if an internal error or a signal ends the process.
  process.once('exit', restore);
  for (const signal of END_SIGNALS) process.once(signal, screen.stop);
  input.on('keypress', screen.pressed);
  output.on('resize', screen.draw);
  input.resume();
  void options.hubEnded.then(() => screen.end(EXIT.noHub));
  try {
    return await screen.ended;
  } finally {
    screen.end(EXIT.ok);
    input.off('keypress', screen.pressed);
    output.off('resize', screen.draw);
    for (const signal of END_SIGNALS) process.off(signal, screen.stop);
    process.off('exit', restore);
    input.pause();
    restore();
  }
}

/** The state on the screen. Reads the hub each second, and acts on keys. */
class WatchScreen {
  readonly ended: Promise<number>;
  readonly #options: WatchTerminalOptions;
  #state: WatchState | undefined;
  #shown = '';
  #timer: NodeJS.Timeout | undefined;
  #resolve!: (code: number) => void;
  #reject!: (error: unknown) => void;
  #isOver = false;

  constructor(options: WatchTerminalOptions) {
    this.#options = options;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    void this.#look();
  }

  end(code: number): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#resolve(code);
  }

  readonly stop = (): void => this.end(CTRL_C_CODE);

  readonly pressed = (_text: string | undefined, key: { readonly name?: string; readonly ctrl?: boolean }): void => {
    const isCtrlC = key.ctrl === true && key.name === 'c';
    if (isCtrlC) this.stop();
    if (this.#state === undefined && key.name === 'q') this.end(EXIT.ok);
    if (this.#state === undefined || isCtrlC) return;
    const { state, effect } = withKey(this.#state, key.name ?? '');
    this.#state = state;
    this.draw();
    if (effect?.kind === 'quit') this.end(EXIT.ok);
    if (effect?.kind === 'restart') void this.#restart(effect.server);
    // Shows the log of another server at once.
    if (state.log?.lines.length === 0) void this.#readLog().catch(this.#failed);
  };

  readonly draw = (): void => {
    const { output } = this.#options;
    if (this.#state === undefined || this.#isOver) return;
    const lines = view(this.#state, output.columns || 80, output.rows || 24, lookOf(output).isColored);
    const text = lines.map((line) => `${line}\x1b[K`).join('\r\n');
    if (text === this.#shown) return;
    this.#shown = text;
    output.write(BEGIN + text + END);
  };

  async #look(): Promise<void> {
    try {
      this.#state = withFacts(this.#state, await this.#options.readFacts());
      await this.#readLog();
      if (!this.#isOver) this.#timer = setTimeout(() => this.#look(), LOOK_EVERY_MS);
    } catch (error) {
      this.#failed(error);
    }
  }

  async #readLog(): Promise<void> {
    const server = this.#state?.log?.server;
    if (server !== undefined) {
      const lines = await this.#options.readLog(server);
      // Another server may have been chosen meanwhile.
      if (this.#state?.log?.server === server) this.#state = { ...this.#state, log: { server, lines } };
    }
    this.draw();
  }

  async #restart(server: string): Promise<void> {
    const note = await this.#options.restart(server).then(
      () => `${server} is being restarted. Its calls in flight fail.`,
      (error: unknown) => errorMessage(error),
    );
    if (this.#state !== undefined) this.#state = { ...this.#state, note };
    this.draw();
  }

  /** Reports a failed request after a moment, because the end of the hub also fails requests, with its own message. */
  readonly #failed = (error: unknown): void => void setTimeout(() => this.#reject(error), LOOK_EVERY_MS).unref();
}

const KEYS = '↑↓ choose  r restart  l log  a approve  q quit';
/** Lines for the title, an empty line, the note and the keys. */
const FRAME_LINES = 4;
/** Fewest lines of servers. With less room, the list of clients is left out. */
const MIN_SERVER_LINES = 4;

/** The lines of the screen, which fill its height and fit its width. */
export function view(state: WatchState, width: number, height: number, isColored: boolean): string[] {
  const look: Look = { width, isColored };
  const free = height - FRAME_LINES;
  const wanted = state.servers.length + 1;
  const log = logLines(state, look);
  const forLog = Math.min(log.length, Math.max(Math.floor(free / 2), free - wanted - 1));
  const beside = log.length > 0 ? forLog + 1 : state.clients.length + 2;
  const forServers = Math.min(wanted, free, Math.max(free - beside, log.length > 0 ? 2 : MIN_SERVER_LINES));
  const body = [...serverLines(state, forServers, look), ''];
  if (log.length > 0) body.push(...log.slice(0, 1), ...log.slice(1).slice(1 - forLog));
  else body.push(...clientTable(state, look).slice(0, Math.max(free - body.length, 0)));
  // On a very narrow terminal, a table is still too wide.
  const fixed = Array.from({ length: Math.max(free, 0) }, (_, at) => body[at] ?? '');
  const lines = [printable(titleOf(state)), '', ...fixed, printable(state.note)];
  const keys = paint(look, 'inverse', cliTruncate(KEYS, width).padEnd(width));
  return [...lines.map((line) => cliTruncate(line, width)), keys].slice(-height);
}

function titleOf({ hub, servers, clients }: WatchState): string {
  const counts = `${plural(servers.length, 'server')}, ${plural(clients.length, 'client')}`;
  const draining = hub.isDraining ? '; another hub serves from now on' : '';
  return `Trunkline ${hub.version}  hub ${hub.pid}, up ${duration(hub.uptimeSeconds)}  ${counts}${draining}  ${hub.configFile}`;
}

/** Table of servers, cut to a number of lines that includes the chosen server. */
function serverLines({ servers, chosen }: WatchState, height: number, look: Look): string[] {
  const rows = servers.map((server) => serverRow(server, server.key === chosen, look));
  const head = ['', 'SERVER', 'STATE', 'CALLS/S', 'P50', 'MEMORY', 'LAST ERROR'];
  const [title = '', ...lines] = table([head, ...rows], look, 0).split('\n');
  const visible = Math.max(height - 1, 1);
  const at = servers.findIndex(({ key }) => key === chosen);
  const first = Math.min(Math.max(at - Math.floor(visible / 2), 0), Math.max(lines.length - visible, 0));
  return [title, ...lines.slice(first, first + visible)];
}

function serverRow(server: WatchedServer, isChosen: boolean, look: Look): Cell[] {
  const { key, state, callsPerSecond, p50Ms, memoryBytes, lastError } = server;
  return [
    isChosen ? '>' : ' ',
    { text: key, format: isChosen ? 'inverse' : undefined },
    stateCell(state, look),
    callsPerSecond === null ? UNKNOWN : callsPerSecond.toFixed(1),
    p50Ms === null ? UNKNOWN : `${p50Ms} ms`,
    memoryBytes === null ? UNKNOWN : describeBytes(memoryBytes),
    { text: lastError, format: 'red' },
  ];
}

function clientTable({ clients }: WatchState, look: Look): string[] {
  const rows = clients.map(({ name, version, pid, uptimeSeconds, inFlight }): Cell[] => [
    clientName(name),
    ...[version ?? UNKNOWN, String(pid), duration(uptimeSeconds), String(inFlight)],
  ]);
  return table([['CLIENT', 'VERSION', 'PID', 'ATTACHED FOR', 'IN FLIGHT'], ...rows], look, 0).split('\n');
}

/** Returns a heading and the last output of the chosen server, or nothing if the log is not shown. */
function logLines({ log }: WatchState, look: Look): string[] {
  if (log === undefined) return [];
  const lines = log.lines.length === 0 ? ['(nothing was written yet)'] : log.lines;
  const heading = paint(look, 'bold', cliTruncate(`The last output of ${log.server}:`, look.width ?? 0));
  return [heading, ...lines.map((line) => cliTruncate(`  ${printable(line)}`, look.width ?? 0))];
}

interface WatchFacts {
  readonly hub: HubDescription;
  readonly report: StatusReport;
  /** Milliseconds on a monotonic clock. */
  readonly at: number;
}

interface WatchedServer {
  readonly key: string;
  readonly state: ServerReport['state'];
  /** Calls of all its instances since their start. */
  readonly calls: number;
  /** Null before the second answer of the hub. */
  readonly callsPerSecond: number | null;
  readonly p50Ms: number | null;
  readonly memoryBytes: number | null;
  /** The line of output that names the cause, else the problem in the status, else the last failure; empty without any. */
  readonly lastError: string;
  readonly needsApproval: boolean;
}

export interface WatchState {
  readonly hub: HubDescription;
  readonly at: number;
  readonly servers: readonly WatchedServer[];
  readonly clients: readonly ClientDescription[];
  /** The key of the chosen server. */
  readonly chosen: string | undefined;
  /** The last output of a server, if it is shown. */
  readonly log: { readonly server: string; readonly lines: readonly string[] } | undefined;
  /** One line about the effect of the last key. */
  readonly note: string;
}

/** Returns the state with new facts. Rates need the earlier state. */
export function withFacts(earlier: WatchState | undefined, { hub, report, at }: WatchFacts): WatchState {
  const seconds = earlier === undefined ? 0 : (at - earlier.at) / 1_000;
  const servers = report.servers.map((server): WatchedServer => {
    const instances = hub.servers.filter((each) => each.server === server.server);
    const calls = instances.reduce((sum, each) => sum + each.calls, 0);
    const before = earlier?.servers.find(({ key }) => key === server.server);
    const known = instances.flatMap(({ memoryBytes }) => memoryBytes ?? []);
    return {
      key: server.server,
      state: server.state,
      calls,
      // The sum can shrink, because the calls of an instance that has ended no longer count.
      callsPerSecond: before === undefined || seconds <= 0 ? null : Math.max(0, calls - before.calls) / seconds,
      p50Ms: server.latencyMs?.p50 ?? null,
      memoryBytes: known.length === 0 ? null : known.reduce((sum, bytes) => sum + bytes, 0),
      lastError: server.cause[0] ?? (server.problem || (server.lastFailure ?? '')),
      needsApproval: server.approval !== null,
    };
  });
  const chosen = servers.some(({ key }) => key === earlier?.chosen) ? earlier?.chosen : servers[0]?.key;
  return { hub, at, servers, clients: hub.clients, chosen, log: earlier?.log, note: earlier?.note ?? '' };
}

/** Returns the next state after a key with this name in `node:readline`, and the effect of the key. */
export function withKey(
  state: WatchState,
  key: string,
): { state: WatchState; effect?: { kind: 'quit' } | { kind: 'restart'; server: string } } {
  const { servers, chosen: server } = state;
  switch (key) {
    case 'q':
      return { state, effect: { kind: 'quit' } };
    case 'up':
    case 'k':
      return { state: moved(state, -1) };
    case 'down':
    case 'j':
      return { state: moved(state, 1) };
  }
  if (server === undefined) return { state };
  switch (key) {
    case 'r':
      return { state: { ...state, note: `Restarting ${server}…` }, effect: { kind: 'restart', server } };
    case 'l':
      return { state: { ...state, log: state.log?.server === server ? undefined : { server, lines: [] } } };
    case 'a': {
      const needsApproval = servers.some((each) => each.key === server && each.needsApproval);
      const note = needsApproval
        ? `To review the tools of ${server} that wait, run in another terminal: trunkline approve ${server}`
        : `The tools of ${server} need no approval: its entry has no \`approval: required\`.`;
      return { state: { ...state, note } };
    }
    default:
      return { state };
  }
}

/** Chooses another server. If a log is shown, it becomes the log of this server. */
function moved(state: WatchState, by: number): WatchState {
  const { servers, chosen, log } = state;
  const at = servers.findIndex(({ key }) => key === chosen);
  const next = servers[Math.min(Math.max(at + by, 0), servers.length - 1)]?.key;
  if (next === undefined || next === chosen) return state;
  return { ...state, chosen: next, note: '', log: log === undefined ? undefined : { server: next, lines: [] } };
}
