import { signal, useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { describeBytes } from '../json/printable.js';
import type { CallDetail, CallRow } from '../web/contract.js';
import { type CallGroup, type CallLog, filterCalls, type Gap, groupCalls, slowestFirst } from './calls-list.js';
import { addressOf, hash, queried, route } from './route.js';
import { callLog, hub, report } from './state.js';
import { clock, milliseconds, number, prettyJson } from './text.js';
import {
  Block,
  Choice,
  Command,
  Dialog,
  foreign,
  More,
  optionsOf,
  PAGE_ROWS,
  Pairs,
  Search,
  useRead,
  Waiting,
} from './widgets.js';

/** Calls that are shown while the list is paused, and the time of the pause. */
const paused = signal<{ log: CallLog; at: number } | undefined>(undefined);
/** Causes of the pause, such as an opened call. */
const pausers = new Set<string>();

/** Pauses the list until the returned function is called, or until the person continues. */
function pause(by: string): () => void {
  pausers.add(by);
  paused.value ??= { log: callLog.peek(), at: Date.now() };
  return () => {
    pausers.delete(by);
    if (pausers.size === 0) paused.value = undefined;
  };
}

function togglePause(): void {
  if (paused.value === undefined) pause('person');
  else {
    pausers.clear();
    paused.value = undefined;
  }
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
const ORDERS = [
  ['', 'latest first'],
  ['ms', 'slowest first'],
] as const;
/** From this duration on, seconds are enough where durations are compared. */
const EXACT_MS = 10_000;
const HEADS = ['Ended', 'Call', 'Client', 'Outcome', 'Took', 'Answer'];

export function Calls() {
  const limit = useSignal(PAGE_ROWS);
  const { item } = route.value;
  const held = paused.value;
  const log = held?.log ?? callLog.value;
  const minutes = queried('minutes');
  const after = minutes === '' ? 0 : (held?.at ?? Date.now()) - Number(minutes) * 60_000;
  const all = log.calls.filter(({ at }) => at >= after);
  const [words, server, client, outcome] = [queried('words'), queried('server'), queried('client'), queried('outcome')];
  const found = filterCalls(all, { words, server, client, outcome });
  const gaps = log.gaps.filter(({ to }) => to >= after);
  const isSlowest = queried('sort') === 'ms';
  const entries = isSlowest ? slowestFirst(found) : groupCalls(found, gaps);
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
        <Choice label="Order" name="sort" options={ORDERS} />
        <button type="button" onClick={togglePause}>
          {held === undefined ? 'Pause' : 'Continue'}
        </button>
      </search>
      <Summary found={found} all={all} log={log} after={after} />
      {entries.length > 0 && (
        <table class="calls">
          <caption class="unseen">Calls, {isSlowest ? 'slowest first' : 'latest first; repeats are one row'}</caption>
          <thead>
            <tr>
              {HEADS.map((title, at) => (
                <th key={title} scope="col" class={at > 3 ? 'number' : ''}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {entries
              .slice(0, limit.value)
              .map((entry) =>
                'calls' in entry ? (
                  <Group key={entry.id} group={entry} exactBelow={isSlowest ? EXACT_MS : undefined} />
                ) : (
                  <GapRow key={`gap ${entry.from}`} {...entry} />
                ),
              )}
          </tbody>
        </table>
      )}
      <More limit={limit} count={entries.length} />
      {item !== undefined && <Detail key={item} id={item} />}
    </>
  );
}

interface SummaryProps {
  found: readonly CallRow[];
  /** Calls of the period, which begins at `after`. */
  all: readonly CallRow[];
  log: CallLog;
  after: number;
}

function Summary({ found, all, log, after }: SummaryProps) {
  const isEmpty = log.calls.length === 0;
  if (hub.value === undefined) return <Waiting />;
  if (hub.value.kind === 'none' && isEmpty) return <p>No hub runs, so there are no calls.</p>;
  if (hub.value.kind === 'running' && log.since === 0) return <Waiting />;
  if (isEmpty) return <p class="quiet">No call yet. A call appears here when it ends.</p>;
  const failed = found.filter(({ outcome }) => outcome !== 'ok').length;
  const newer = callLog.value.calls.length + callLog.value.left - log.calls.length - log.left;
  return (
    <p class="quiet">
      {found.length < all.length && `${number(found.length)} of `}
      {number(all.length)} {all.length === 1 ? 'call' : 'calls'} since {clock(Math.max(log.since, after))}
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

function GapRow({ from, to }: Gap) {
  return (
    <tr class="gap">
      <td colSpan={HEADS.length}>
        Calls between {clock(from)} and {clock(to)} were not followed.
      </td>
    </tr>
  );
}

function Group({ group, exactBelow }: { group: CallGroup; exactBelow: number | undefined }) {
  const [latest, ...others] = group.calls;
  const isOpen = useSignal(false);
  const toggle = () => {
    isOpen.value = !isOpen.value;
  };
  useEffect(() => (isOpen.value ? pause(`group ${group.id}`) : undefined), [isOpen.value, group.id]);
  const times = group.calls.map(({ ms }) => ms);
  const range = [Math.min(...times), Math.max(...times)].map((ms) => milliseconds(ms, exactBelow));
  return (
    <>
      <Row call={latest} took={[...new Set(range)].join(' – ')}>
        {others.length > 0 && (
          <button
            type="button"
            class="repeats"
            aria-expanded={isOpen}
            aria-description="Shows each call"
            onClick={toggle}
          >
            ×{number(times.length)}
          </button>
        )}
      </Row>
      {isOpen.value &&
        others
          .slice(0, PAGE_ROWS)
          .map((call) => <Row key={call.id} call={call} took={milliseconds(call.ms)} kind="inner" />)}
    </>
  );
}

function Row(props: { call: CallRow; took: string; kind?: string; children?: ComponentChildren }) {
  const { call, took, kind = '', children } = props;
  const { id, at, client, session, server, name, method, outcome, reason, bytesOut } = call;
  return (
    <tr class={kind}>
      <td>{clock(at)}</td>
      <td>
        <a href={addressOf('calls', String(id), route.value.query)} data-row>
          {foreign(name ?? method)}
        </a>{' '}
        {children} <span class="quiet">{server !== null && foreign(server)}</span>
      </td>
      <td>
        {foreign(client)} <span class="quiet">#{session}</span>
      </td>
      <td>
        <span class={outcome === 'ok' ? 'quiet' : 'state bad'}>{outcomeText(outcome, reason)}</span>
      </td>
      <td class="number">{took}</td>
      <td class="number">{describeBytes(bytesOut)}</td>
    </tr>
  );
}

export function outcomeText(outcome: CallRow['outcome'], reason: string | null): string {
  return foreign(reason === null ? OUTCOMES[outcome] : `${OUTCOMES[outcome]}, ${reason}`);
}

function Detail({ id }: { id: string }) {
  const { answer, fault } = useRead('/call', { id }, '');
  useEffect(() => pause('detail'), []);
  // The row tells of a call that the hub does not keep any more.
  const { calls, failed } = paused.value?.log ?? callLog.value;
  const row = [...calls, ...failed].find((each) => String(each.id) === id);
  const isMissing = answer === null || fault !== undefined;
  const detail = answer ?? (isMissing && row ? { call: row, messages: [], command: null } : undefined);
  // A dialog also closes because the address shows something else by now.
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
  const { server, client, outcome, reason, at, ms, queueMs, serverMs } = call;
  const time = (value: number | null) => (value === null ? 'not sent' : milliseconds(value, EXACT_MS));
  return (
    <>
      <p>
        {foreign(`${server ?? 'Trunkline'} for ${client}, ended ${clock(at)}: `)}
        <b class={outcome === 'ok' ? '' : 'bad'}>{outcomeText(outcome, reason)}</b>
      </p>
      <Pairs
        kind="times"
        rows={[
          ['Took', time(ms)],
          ['In the queue', time(queueMs)],
          ['In the server', time(serverMs)],
        ]}
      />
      {command !== null && <Command text={command} />}
      {messages.length === 0 && <p>The hub has no messages of this call. It keeps those of the latest calls.</p>}
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

/** Characters of a message that are shown at first. */
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
