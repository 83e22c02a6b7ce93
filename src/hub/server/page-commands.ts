import { stripVTControlCharacters } from 'node:util';
import type { Backend } from '../../gateway/registry/backend.js';
import { listProcesses, reportStatus } from '../../gateway/status/status.js';
import { definitionOf, reportView } from '../../gateway/status/tool-report.js';
import { printable } from '../../json/printable.js';
import type { Clock } from '../../timing/clock.js';
import type { HubDescription, OutputEvent, OutputLine, PageEvent, UsagePoint } from '../control.js';
import type { HubLife } from '../hub-life.js';
import type { ControlCommands, ControlContext } from './control-connection.js';
import { FollowedCalls } from './followed-calls.js';
import { aborted, describe, type HubCommandsOptions, type ServedGateway } from './hub-commands.js';

/** Time between two states, and between two looks at the counts of calls, which have no events. */
const STATE_EVERY_MS = 1_000;
/** Pause after an event, because one cause often has several events. */
const GATHER_MS = 50;
const USAGE_EVERY_MS = 10_000;

/** The events after which the state differs. */
const CHANGES = ['server.changed', 'lists.merged', 'client.connected', 'client.left', 'config.read'] as const;

/** The commands of `trunkline web`. Nothing of them stays when their connection is closed. */
export function pageCommands(options: HubCommandsOptions): ControlCommands {
  const { running, configFile, platform } = options;
  let calls: FollowedCalls | undefined;
  let pages = 0;
  // Begins with the time, because a link to a call of the hub before must not open one of this hub.
  let lastCall = Date.now() * 1_000;
  const nextId = () => {
    lastCall += 1;
    return lastCall;
  };
  /** Observes the calls, also for other pages, until the signal. */
  const observe = async (signal: AbortSignal): Promise<FollowedCalls | undefined> => {
    const { composition } = await running;
    if (signal.aborted) return undefined;
    pages += 1;
    calls ??= new FollowedCalls(composition, configFile, nextId);
    signal.addEventListener('abort', () => {
      pages -= 1;
      if (pages > 0) return;
      calls?.close();
      calls = undefined;
    });
    return calls;
  };
  return {
    /** Emits the state when it has changed, and the usage of the servers, until the connection is closed. */
    page: async (_, context) => {
      void observe(context.signal);
      await Promise.all([followState(options, context), followUsage(options, context)]);
      return null;
    },
    /** Emits the calls that have ended, until the connection is closed. */
    calls: async (_, { emit, signal }) => {
      const end = (await observe(signal))?.follow(emit);
      await aborted(signal);
      end?.();
      return null;
    },
    /** A call with its messages. They are kept for the latest followed calls, until the last page is closed. */
    call: ({ id }) => calls?.detailOf(Number(id)) ?? null,
    /** The latest failed calls of a server since a page was opened. */
    failures: ({ server }) => calls?.failuresOf(String(server)) ?? { since: Date.now(), calls: [] },
    /** Emits the output of a server, until the connection is closed. */
    output: async ({ server }, context) => {
      const { composition } = await running;
      await followOutput(String(server), composition, platform.clock, context);
      return null;
    },
    /** The definition of a shown tool, as clients of a view get it; null if there is none. */
    definition: async ({ name, view }) => {
      const { gateway, secrets } = (await running).composition;
      const { tools } = gateway.catalogsIn(view === '' ? undefined : gateway.named(String(view)));
      const entry = definitionOf(String(name), tools);
      return entry === undefined ? null : secrets.redact(new TextDecoder().decode(entry));
    },
    /** The tools that each view shows and hides. */
    tools: async () => {
      const { composition } = await running;
      const { gateway, config, secrets } = composition;
      const clients = describe(options).clients.flatMap(({ name, view }) => (name === null ? [] : [{ name, view }]));
      const views = [undefined, ...config.gateway.views.map(({ name }) => gateway.named(name))].map((view) =>
        reportView({
          view,
          clients: clients.flatMap(({ name, view: own }) => ((own ?? undefined) === view?.name ? [name] : [])),
          catalogs: gateway.catalogsIn(view),
          backends: gateway.pool.oldest,
          redact: secrets.redact,
        }),
      );
      return { views };
    },
  };
}

async function followState(options: HubCommandsOptions, { emit, signal }: ControlContext): Promise<void> {
  const { hub, running, life, platform } = options;
  const { clock } = platform;
  let look = new AbortController();
  let isChanged = true;
  const ends: (() => void)[] = [];
  const onChange = () => {
    isChanged = true;
    look.abort();
  };
  signal.addEventListener('abort', () => look.abort());
  void running.then(({ composition }) => {
    if (signal.aborted) return;
    for (const kind of CHANGES) ends.push(composition.platform.events.subscribe(kind, onChange));
    onChange();
  });
  let counts = '';
  let sentAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const composition = hub()?.composition;
    const now = countsOf(composition, life);
    if (isChanged || now !== counts) {
      counts = now;
      sentAt = clock.now();
      isChanged = !emit(stateOf(composition, describe(options)));
    }
    look = new AbortController();
    await pause(clock, STATE_EVERY_MS, look.signal);
    if (isChanged) await pause(clock, Math.max(GATHER_MS, sentAt + STATE_EVERY_MS - clock.now()), signal);
  }
  for (const end of ends) end();
}

function stateOf(composition: ServedGateway | undefined, hub: HubDescription): PageEvent {
  if (composition === undefined) return { kind: 'state', hub, report: null };
  const { redact } = composition.secrets;
  const clean = (text: string | null) => (text === null ? null : printable(redact(text)));
  const clients = hub.clients.map((each) => ({ ...each, name: clean(each.name), version: clean(each.version) }));
  return { kind: 'state', hub: { ...hub, clients }, report: reportStatus(composition.status()) };
}

/** Numbers that change without an event, as one text. */
function countsOf(composition: ServedGateway | undefined, { refusal }: HubLife): string {
  if (composition === undefined) return '';
  const servers = instancesOf(composition).map(({ dispatcher, clients }) => {
    const { counters, connection, admission, breaker } = dispatcher;
    return [counters.calls, connection?.inFlight, admission.queued, breaker.state, clients.size].join();
  });
  return [refusal, ...servers].join(';');
}

function instancesOf({ gateway: { pool } }: ServedGateway): readonly Backend[] {
  return [...pool.keys].flatMap((key) => pool.of(key));
}

async function followUsage(
  { running, platform: { clock } }: HubCommandsOptions,
  { emit, signal }: ControlContext,
): Promise<void> {
  const { composition } = await running;
  let before: ReadonlyMap<string, number> | undefined;
  let readAt = 0;
  while (!signal.aborted) {
    await composition.readUsage();
    const now = clock.now();
    const processes = listProcesses(composition.status());
    const calls = new Map(processes.map((each) => [each.id, each.calls]));
    const servers = processes.map(({ id, server, memoryBytes, cpuPercent, calls: count }): UsagePoint => {
      const added = before && Math.max(0, count - (before.get(id) ?? 0));
      const callsPerMinute = added === undefined ? null : Math.round((added * 60_000) / Math.max(1, now - readAt));
      return { id, server, memoryBytes, cpuPercent, callsPerMinute };
    });
    if (emit({ kind: 'usage', servers } satisfies PageEvent)) [before, readAt] = [calls, now];
    await pause(clock, USAGE_EVERY_MS, signal);
  }
}

/** Time between two events with output, and lines that wait for one. */
const OUTPUT_EVERY_MS = 100;
const MAX_LINES = 500;

async function followOutput(
  server: string,
  composition: ServedGateway,
  clock: Clock,
  { emit, signal }: ControlContext,
): Promise<void> {
  let waiting: OutputLine[] = [];
  let left = 0;
  let cancel: (() => void) | undefined;
  const flush = () => {
    cancel = undefined;
    const excess = Math.max(0, waiting.length - MAX_LINES);
    const lines = waiting.slice(excess);
    const isTaken = emit({ lines, isFirst: false, left: left + excess } satisfies OutputEvent);
    left = isTaken ? 0 : left + waiting.length;
    waiting = [];
  };
  const { lines, end } = composition.followOutput(server, (line) => {
    waiting.push(plain(line));
    cancel ??= clock.schedule(OUTPUT_EVERY_MS, flush);
  });
  const first = lines.slice(-MAX_LINES).map(plain);
  emit({ lines: first, isFirst: true, left: 0 } satisfies OutputEvent);
  await aborted(signal);
  end();
  cancel?.();
}

/** Without colors, and with invisible characters shown. */
function plain(line: OutputLine): OutputLine {
  return { ...line, text: printable(stripVTControlCharacters(line.text)) };
}

/** Waits, at most until the signal. */
async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const cancel = clock.schedule(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      resolve();
    });
  });
}
