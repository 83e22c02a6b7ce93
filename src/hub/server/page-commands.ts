import { stripVTControlCharacters } from 'node:util';
import type { Backend } from '../../gateway/registry/backend.js';
import { reportStatus } from '../../status/status.js';
import { definitionOf, reportView } from '../../status/tool-report.js';
import { printable } from '../../wire/json/printable.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { PageEvent } from '../control.js';
import type { HubLife } from '../hub-life.js';
import type { ControlCommands, ControlContext } from './control-connection.js';
import { FollowedCalls } from './followed-calls.js';
import { describe, type HubCommandsOptions, type ServedGateway } from './hub-commands.js';

/** Time between two states, and between two looks at the counts of calls, which have no events. */
const STATE_EVERY_MS = 1_000;
/** Pause after an event, because one cause often has several events. */
const GATHER_MS = 50;
const USAGE_EVERY_MS = 10_000;
/** Time between two histories while calls end. */
const HISTORY_EVERY_MS = 2_000;
/** Lines of output that a page shows. */
const MAX_LINES = 500;

/** The events after which the state differs. */
const CHANGES = ['server.changed', 'lists.merged', 'client.connected', 'client.left', 'config.read'] as const;

/** The commands of `trunkline web`. Only the history of usage goes on when their connection is closed. */
export function pageCommands(options: HubCommandsOptions): ControlCommands {
  const { running, configFile } = options;
  let calls: FollowedCalls | undefined;
  // The history begins now, so that a page that is opened later has a past.
  void running.then(({ composition }) => composition.usage.history(composition.gateway.pool.keys));
  return {
    /** Emits the state and the calls that end, until the connection is closed. */
    page: async (_, context) => {
      const { emit, signal } = context;
      void running.then(({ composition }) => {
        if (signal.aborted) return;
        calls ??= new FollowedCalls(composition, configFile);
        const end = calls.follow((event) => emit({ kind: 'calls', ...event } satisfies PageEvent));
        signal.addEventListener('abort', end);
      });
      await followState(options, context);
      return null;
    },
    /** A call with its messages; null if they are not kept. The latest calls are, until the last page is closed. */
    call: ({ id }) => calls?.detailOf(Number(id)) ?? null,
    /** The last output of a server, without colors, and with invisible characters shown. */
    output: async ({ server }) => {
      const lines = (await running).composition.outputOf(String(server)).slice(-MAX_LINES);
      return lines.map((line) => ({ ...line, text: printable(stripVTControlCharacters(line.text)) }));
    },
    /** The definition of a shown tool, as clients of a view get it; null if there is none. */
    definition: async ({ name, view }) => {
      const { gateway, secrets } = (await running).composition;
      const { tools } = gateway.catalogsIn(view === '' ? undefined : gateway.named(String(view)));
      const entry = definitionOf(String(name), tools);
      return entry === undefined ? null : secrets.redact(new TextDecoder().decode(entry));
    },
    tools: async () => {
      const { composition } = await running;
      const { gateway, config, secrets } = composition;
      const clients = describe(options).clients.flatMap(({ name, view }) => (name === null ? [] : [{ name, view }]));
      const views = [undefined, ...config.gateway.views.map(({ name }) => gateway.named(name))].map((view) =>
        reportView({
          view,
          mode: config.gateway.mode,
          clients: clients.flatMap(({ name, view: own }) => ((own ?? undefined) === view?.name ? [name] : [])),
          catalogs: gateway.catalogsIn(view),
          backends: gateway.pool.oldest.filter(({ key }) => gateway.pool.isFor(key, undefined)),
          redact: secrets.redact,
        }),
      );
      return { views };
    },
  };
}

/** Emits the state when it has changed, and the history of usage every ten seconds, or every two seconds while calls end. */
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
  let readAt = Number.NEGATIVE_INFINITY;
  let toldCounts = '';
  let toldAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    const composition = hub()?.composition;
    const now = countsOf(composition, life);
    if (isChanged || now !== counts) {
      counts = now;
      sentAt = clock.now();
      isChanged = !emit(stateOf(options));
    }
    const isUsageDue = composition !== undefined && clock.now() - readAt >= USAGE_EVERY_MS;
    if (isUsageDue) readAt = clock.now();
    const isHistoryDue = counts !== toldCounts && clock.now() - toldAt >= HISTORY_EVERY_MS;
    if (composition !== undefined && (isUsageDue || isHistoryDue)) {
      toldCounts = counts;
      toldAt = clock.now();
      emit({ kind: 'history', ...composition.usage.history(composition.gateway.pool.keys) } satisfies PageEvent);
    }
    look = new AbortController();
    await pause(clock, STATE_EVERY_MS, look.signal);
    if (isUsageDue) {
      await composition.usage.refresh();
      isChanged = true;
    }
    if (isChanged) await pause(clock, Math.max(GATHER_MS, sentAt + STATE_EVERY_MS - clock.now()), signal);
  }
  for (const end of ends) end();
}

function stateOf(options: HubCommandsOptions): PageEvent {
  const composition = options.hub()?.composition;
  if (composition === undefined) return { kind: 'state', hub: describe(options), report: null };
  const report = reportStatus(composition.status());
  const hub = describe(options, report);
  const { redact } = composition.secrets;
  const clean = (text: string | null) => (text === null ? null : printable(redact(text)));
  const clients = hub.clients.map((each) => ({ ...each, name: clean(each.name), version: clean(each.version) }));
  return { kind: 'state', hub: { ...hub, clients }, report };
}

/** Numbers that change without an event, as one text. */
function countsOf(
  composition: ServedGateway | undefined,
  { refusal }: { readonly refusal: HubLife['refusal'] },
): string {
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

/** Waits, at most until the signal. Leaves no listener on the signal, which lasts as long as the page. */
async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.schedule(ms, end);
    signal.addEventListener('abort', end);
  });
}
