import { effect, signal, useComputed, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { describeBytes } from '../../wire/json/printable.js';
import type { CallDetail, CallRow } from '../server/contract.js';
import { filterCalls, type Gap, groupCalls, type ShownCalls, withPast } from './calls-list.js';
import { addressOf, hash, queried, route } from './route.js';
import { callLog, hub, replacements, report } from './state.js';
import { milliseconds, number, prettyJson, when } from './text.js';
import {
  Block,
  Choice,
  Command,
  Dialog,
  foreign,
  optionsOf,
  PAGE_ROWS,
  Pairs,
  prose,
  Search,
  Table,
  useRead,
  Waiting,
} from './widgets.js';

/** Calls that are shown while the list is paused, and the time of the pause. */
const paused = signal<{ log: ShownCalls; at: number } | undefined>(undefined);

/** Calls of the call log. They are read once, because the log can be long. */
const past = signal<readonly CallRow[] | undefined>(undefined);

// Forgets these calls when the page shows another configuration.
effect(() => {
  replacements.value;
  paused.value = undefined;
  past.value = undefined;
});

/** The calls of the call log, followed by the calls that the page has received. */
export function useCalls(): ShownCalls {
  const isWanted = hub.value !== undefined && past.value === undefined;
  const { answer } = useRead('GET /past', {}, replacements.value, isWanted);
  useEffect(() => {
    if (answer !== undefined) past.value = answer;
  }, [answer]);
  return withPast(callLog.value, past.value ?? []);
}

const OUTCOMES: Readonly<Record<CallRow['outcome'], string>> = {
  ok: 'ok',
  tool_error: 'tool error',
  rpc_error: 'protocol error',
  failed: 'failed',
  cancelled: 'cancelled',
};
const OUTCOME_OPTIONS = [['', 'any outcome'], ['bad', 'all but ok'], ...Object.entries(OUTCOMES)] as [string, string][];
const PERIODS = [
  ['', 'any time'],
  ['1', 'last minute'],
  ['5', 'last 5 minutes'],
] as const;
/** Shortest duration that is shown in seconds where durations are compared. */
const EXACT_MS = 10_000;

export function Calls() {
  const { item } = route.value;
  const held = paused.value;
  const now = useCalls();
  const log = held?.log ?? now;
  const togglePause = () => {
    paused.value = held === undefined ? { log: now, at: Date.now() } : undefined;
  };
  const minutes = queried('minutes');
  const after = minutes === '' ? 0 : (held?.at ?? Date.now()) - Number(minutes) * 60_000;
  const all = log.calls.filter(({ at }) => at >= after);
  const words = queried('words');
  const server = queried('server');
  const client = queried('client');
  const outcome = queried('outcome');
  const found = filterCalls(all, { words, server, client, outcome });
  const gaps = log.gaps.filter(({ to }) => to >= after);
  const servers = [...(hub.value?.kind === 'none' ? hub.value.servers : (report.value?.servers ?? [])), ...log.calls];
  const names = servers.map((each) => each.server);
  const clients = log.calls.map((call) => call.client);
  return (
    <>
      <search class="filters">
        <Search label="Filter the calls" />
        <Choice label="Server" name="server" options={optionsOf('all servers', 'server', names)} />
        <Choice label="Client" name="client" options={optionsOf('all clients', 'client', clients)} />
        <Choice label="Outcome" name="outcome" options={OUTCOME_OPTIONS} />
        <Choice label="Period" name="minutes" options={PERIODS} />
        <button type="button" onClick={togglePause}>
          {held === undefined ? 'Pause' : 'Continue'}
        </button>
      </search>
      <Summary found={found} all={all} log={log} newest={now} after={after} />
      {found.length + gaps.length > 0 && <List calls={found} gaps={gaps} />}
      {item !== undefined && <Detail key={item} id={item} log={log} />}
    </>
  );
}

interface SummaryProps {
  found: readonly CallRow[];
  /** Calls of the period, which begins at `after`. */
  all: readonly CallRow[];
  log: ShownCalls;
  /** The log that would be shown without a pause. */
  newest: ShownCalls;
  after: number;
}

function Summary({ found, all, log, newest, after }: SummaryProps) {
  const isEmpty = log.calls.length === 0;
  if (hub.value === undefined) return <Waiting />;
  if (hub.value.kind === 'none' && isEmpty) return <p>No hub runs, so there are no calls.</p>;
  if (hub.value.kind === 'running' && log.since === 0) return <Waiting />;
  if (isEmpty) return <p class="quiet">No call yet. A call appears here when it ends.</p>;
  const failed = found.filter(({ outcome }) => outcome !== 'ok').length;
  const newer = newest.calls.length + newest.left - log.calls.length - log.left;
  return (
    <p class="quiet">
      {found.length < all.length && `${number(found.length)} of `}
      {number(all.length)} {all.length === 1 ? 'call' : 'calls'} since {when(Math.max(log.since, after))}
      {failed > 0 && (
        <>
          , <b class="bad">{number(failed)} not ok</b>
        </>
      )}
      {log.left > 0 && after === 0 && `, ${number(log.left)} more, not shown`}
      {paused.value !== undefined && `, paused, ${number(newer)} newer`}
    </p>
  );
}

/** A call with its repeats, one of these repeats, or a time in which no call was followed. */
type Line = { readonly key: string } & (
  | { readonly gap: Gap }
  | { readonly calls: readonly [CallRow, ...CallRow[]]; readonly isRepeat?: true }
);

function latest<T>(cell: (call: CallRow) => T): (line: Line) => T | null {
  return (line) => ('gap' in line ? null : cell(line.calls[0]));
}

/** Table of calls, latest first, with repeats in one row. If it is sorted by another column, each call has a row. */
function List({ calls, gaps }: { calls: readonly CallRow[]; gaps: readonly Gap[] }) {
  const by = useSignal('');
  const opened = useSignal<ReadonlySet<string>>(new Set());
  const toggle = (key: string) => () => {
    const others = [...opened.value].filter((each) => each !== key);
    opened.value = new Set(opened.value.has(key) ? others : [...others, key]);
  };
  const lines = groupCalls(calls, gaps).flatMap((entry): Line[] => {
    if (!('calls' in entry)) return [{ key: `gap ${entry.from}`, gap: entry }];
    const key = String(entry.id);
    const repeats = opened.value.has(key) ? entry.calls.slice(1, PAGE_ROWS) : [];
    return [
      { key, calls: entry.calls },
      ...repeats.map((call): Line => ({ key: `${key} ${call.id}`, calls: [call], isRepeat: true })),
    ];
  });
  const singles = calls.map((call): Line => ({ key: String(call.id), calls: [call] }));
  const exactBelow = by.value === '' ? undefined : EXACT_MS;
  return (
    <Table
      kind="calls"
      caption={by.value === '' ? 'Latest first; repeats are one row' : 'Each call has a row'}
      rows={by.value === '' ? lines : singles}
      by={by}
      keyOf={({ key }) => key}
      kindOf={(line) => ('gap' in line ? 'gap' : line.isRepeat ? 'inner' : undefined)}
      columns={[
        ['Ended', latest(({ at }) => when(at))],
        ['Call', (line) => <Name line={line} isOpen={opened.value.has(line.key)} toggle={toggle(line.key)} />],
        ['Client', latest(({ client, session }) => <Client client={client} session={session} />)],
        ['Outcome', latest((call) => <Outcome {...call} />)],
        ['Took', (line) => ('gap' in line ? null : took(line.calls, exactBelow)), latest(({ ms }) => ms)],
        ['Answer', latest(({ bytesOut }) => describeBytes(bytesOut)), latest(({ bytesOut }) => bytesOut)],
      ]}
    />
  );
}

function Name({ line, isOpen, toggle }: { line: Line; isOpen: boolean; toggle: () => void }) {
  if ('gap' in line)
    return (
      <>
        Calls between {when(line.gap.from)} and {when(line.gap.to)} were not followed.
      </>
    );
  const [{ id, name, method, server }, ...repeats] = line.calls;
  return (
    <>
      <a href={addressOf('calls', String(id), route.value.query)}>{foreign(name ?? method)}</a>{' '}
      {repeats.length > 0 && (
        <button
          type="button"
          class="repeats"
          aria-expanded={isOpen}
          aria-description="Shows each call"
          onClick={toggle}
        >
          ×{number(line.calls.length)}
        </button>
      )}{' '}
      <span class="quiet">{server !== null && foreign(server)}</span>
    </>
  );
}

function Client({ client, session }: { readonly client: string; readonly session: CallRow['session'] }) {
  return (
    <>
      {foreign(client)} <span class="quiet">#{session}</span>
    </>
  );
}

function Outcome({ outcome, reason }: CallRow) {
  return <span class={outcome === 'ok' ? 'quiet' : 'state bad'}>{outcomeText(outcome, reason)}</span>;
}

function took(calls: readonly CallRow[], exactBelow: number | undefined): string {
  const times = calls.map(({ ms }) => ms);
  const range = [Math.min(...times), Math.max(...times)].map((ms) => milliseconds(ms, exactBelow));
  return [...new Set(range)].join(' – ');
}

export function outcomeText(outcome: CallRow['outcome'], reason: string | null): string {
  return foreign(reason === null ? OUTCOMES[outcome] : `${OUTCOMES[outcome]}, ${reason}`);
}

function Detail({ id, log }: { id: string; log: ShownCalls }) {
  const { answer, fault } = useRead('GET /call', { id }, '');
  // If the hub no longer keeps the call, the row of the list has its facts.
  const row = [...log.calls, ...log.failed].find((each) => String(each.id) === id);
  const isMissing = answer === null || fault !== undefined;
  const detail = answer ?? (isMissing && row ? { call: row, messages: [], command: null } : undefined);
  // The dialog may also close because the address shows something else by now.
  const close = () => {
    hash.value = location.hash;
    const { part, item, query } = route.value;
    if (part === 'calls' && item === id) location.hash = addressOf('calls', undefined, query);
  };
  return (
    <Dialog title={detail ? (detail.call.name ?? detail.call.method) : 'Call'} onClose={close}>
      {detail ? (
        <Messages {...detail} />
      ) : (
        <Waiting fault={answer === null ? 'The hub does not keep this call any more.' : fault} />
      )}
    </Dialog>
  );
}

const LEGS = [
  ['Client and Trunkline', 'client'],
  ['Trunkline and server', 'server'],
] as const;
const TITLES = {
  'client request': 'Client → Trunkline',
  'server request': 'Trunkline → server',
  'server answer': 'Server → Trunkline',
  'client answer': 'Trunkline → client',
} as const;

function Messages({ call, messages, command }: CallDetail) {
  const { server, client, outcome, reason, at, ms, queueMs, serverMs, isLogged } = call;
  const time = (value: number | null) => (value === null ? 'not sent' : milliseconds(value, EXACT_MS));
  return (
    <>
      <p>
        {foreign(`${server ?? 'Trunkline'} for ${client}, ended ${when(at)}: `)}
        <b class={outcome === 'ok' ? '' : 'bad'}>{outcomeText(outcome, reason)}</b>
      </p>
      <Pairs
        kind="times"
        rows={[
          ['Took', time(ms)],
          ...(isLogged
            ? []
            : ([
                ['In the queue', time(queueMs)],
                ['In the server', time(serverMs)],
              ] as const)),
        ]}
      />
      {command !== null && <Command text={command} />}
      {messages.length === 0 && (
        <p>
          {prose(
            isLogged
              ? 'This call is from the call log, which has no messages. `callLog: full` in the configuration adds arguments and results for `trunkline activity`.'
              : 'The hub has no messages of this call. It keeps those of the latest calls.',
          )}
        </p>
      )}
      {LEGS.map(([name, own]) => {
        const shown = messages.filter(({ leg }) => leg === own);
        return (
          shown.length > 0 && (
            <section key={own}>
              <h2>{name}</h2>
              <div class="messages">
                {shown.map(({ direction, ...message }) => (
                  <Message key={direction} title={TITLES[`${own} ${direction}`]} {...message} />
                ))}
              </div>
            </section>
          )
        );
      })}
    </>
  );
}

/** Number of characters of a message that are shown at first. */
const SHOWN_LENGTH = 20_000;

export function Message({ title, text, bytes }: { title: string; text: string | null; bytes: number }) {
  const length = useSignal(SHOWN_LENGTH);
  const pretty = useComputed(() => prettyJson(text ?? '')).value;
  const showAll = () => {
    length.value = pretty.length;
  };
  return (
    <section>
      <h3>
        {title} <span class="quiet">{describeBytes(bytes)}</span>
      </h3>
      {text === null ? <p>Too large to be kept.</p> : <Block label={title}>{pretty.slice(0, length.value)}</Block>}
      {pretty.length > length.value && (
        <button type="button" onClick={showAll}>
          Show all {number(pretty.length)} characters
        </button>
      )}
    </section>
  );
}
