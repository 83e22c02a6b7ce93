import { signal, useComputed, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { describeBytes } from '../json/printable.js';
import type { CallDetail, CallRow } from '../web/contract.js';
import { type CallGroup, filterCalls, groupCalls, slowestFirst } from './calls-list.js';
import { addressOf, hash, route } from './route.js';
import { calls, callsLeft, callsWatched, hub } from './state.js';
import { clock, milliseconds, number, prettyJson } from './text.js';
import { Block, Choice, Command, Dialog, foreign, More, PAGE_ROWS, Search, useRead, Waiting } from './widgets.js';

/** Calls that are shown while the list is paused, and the time of the pause. */
const paused = signal<{ calls: readonly CallRow[]; at: number } | undefined>(undefined);

export function pause(): void {
  paused.value ??= { calls: calls.value, at: Date.now() };
}

function togglePause(): void {
  if (paused.value === undefined) pause();
  else paused.value = undefined;
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
const HEADS = ['Ended', 'Call', 'Client', 'Outcome', 'Took', 'Answer'];

export function Calls() {
  const limit = useSignal(PAGE_ROWS);
  const { query, item } = route.value;
  const [words = '', server = '', client = '', outcome = '', minutes, sort] = [
    'words',
    'server',
    'client',
    'outcome',
    'minutes',
    'sort',
  ].map((name) => query.get(name) ?? '');
  const held = paused.value;
  const all = held?.calls ?? calls.value;
  const after = minutes === '' ? 0 : (held?.at ?? Date.now()) - Number(minutes) * 60_000;
  const found = filterCalls(all, { words, server, client, outcome, after });
  const groups = sort === 'ms' ? slowestFirst(found) : groupCalls(found);
  return (
    <>
      <search class="filters">
        <Search label="Filter the calls" />
        <Choice
          label="Server"
          name="server"
          options={optionsOf(
            'all servers',
            server,
            all.map((call) => call.server),
          )}
        />
        <Choice
          label="Client"
          name="client"
          options={optionsOf(
            'all clients',
            client,
            all.map((call) => call.client),
          )}
        />
        <Choice label="Outcome" name="outcome" options={OUTCOME_OPTIONS} />
        <Choice label="Period" name="minutes" options={PERIODS} />
        <Choice label="Order" name="sort" options={ORDERS} />
        <button type="button" onClick={togglePause}>
          {held === undefined ? 'Pause' : 'Continue'}
        </button>
      </search>
      <Summary found={found} all={all} />
      {groups.length > 0 && (
        <table class="calls">
          <caption class="unseen">
            Calls, {sort === 'ms' ? 'slowest first' : 'latest first; repeats are one row'}
          </caption>
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
            {groups.slice(0, limit.value).map((group) => (
              <Group key={group.id} group={group} />
            ))}
          </tbody>
        </table>
      )}
      <More limit={limit} count={groups.length} />
      {item !== undefined && <Detail key={item} id={item} />}
    </>
  );
}

function optionsOf(all: string, chosen: string, values: readonly (string | null)[]) {
  const options = [...new Set([...values, chosen])].filter((value) => value !== null && value !== '').sort();
  return [['', all], ...options.map((value) => [value, value])] as [string, string][];
}

function Summary({ found, all }: { found: readonly CallRow[]; all: readonly CallRow[] }) {
  if (hub.value === undefined) return <Waiting />;
  if (hub.value.kind === 'none' && all.length === 0) return <p>No hub runs, so there are no calls.</p>;
  if (hub.value.kind === 'running' && callsWatched.value === undefined) return <Waiting />;
  if (all.length === 0) return <p class="quiet">No call yet. A call appears here when it ends.</p>;
  const failed = found.filter(({ outcome }) => outcome !== 'ok').length;
  const left = callsLeft.value;
  const latest = all.at(-1)?.id ?? 0;
  const newer = paused.value === undefined ? 0 : calls.value.filter(({ id }) => id > latest).length;
  return (
    <p class="quiet">
      {number(found.length)} {found.length < all.length && `of ${number(all.length)} `}
      {found.length === 1 && all.length === 1 ? 'call' : 'calls'}
      {callsWatched.value !== undefined && ` since ${clock(callsWatched.value.since)}`}
      {failed > 0 && (
        <>
          , <b class="bad">{number(failed)} not ok</b>
        </>
      )}
      {left > 0 && `, ${number(left)} more, not shown`}
      {paused.value !== undefined && `, paused, ${number(newer)} newer`}
    </p>
  );
}

function Group({ group }: { group: CallGroup }) {
  const [latest, ...others] = group.calls;
  const isOpen = useSignal(false);
  const toggle = () => {
    isOpen.value = !isOpen.value;
    pause();
  };
  const times = [latest, ...others].map(({ ms }) => ms);
  const [least, most] = [milliseconds(Math.min(...times)), milliseconds(Math.max(...times))];
  return (
    <>
      <Row call={latest} took={least === most ? most : `${least} – ${most}`}>
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
      {callsWatched.value?.gaps.has(group.id) && (
        <tr class="gap">
          <td colSpan={HEADS.length}>Calls between here and the next row were not watched.</td>
        </tr>
      )}
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
      <td>{outcome !== 'ok' && <span class="state bad">{outcomeText(outcome, reason)}</span>}</td>
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
  // A dialog also closes because the address shows something else by now.
  const close = () => {
    hash.value = location.hash;
    const { part, item, query } = route.value;
    if (part === 'calls' && item === id) location.hash = addressOf('calls', undefined, query);
  };
  return (
    <Dialog title={answer === undefined ? `Call ${id}` : (answer.call.name ?? answer.call.method)} onClose={close}>
      {answer === undefined ? <Waiting fault={fault} /> : <Messages {...answer} />}
    </Dialog>
  );
}

const LEGS = {
  'client request': 'Client → Trunkline',
  'server request': 'Trunkline → server',
  'server answer': 'Server → Trunkline',
  'client answer': 'Trunkline → client',
} as const;

function Messages({ call, messages, command }: CallDetail) {
  const { server, client, outcome, reason, at, ms, queueMs, serverMs } = call;
  const times = [
    ['Took', ms],
    ['In the queue', queueMs],
    ['In the server', serverMs],
  ] as const;
  return (
    <>
      <p>
        {foreign(`${server ?? 'Trunkline'} for ${client}, ended ${clock(at)}: `)}
        <b class={outcome === 'ok' ? '' : 'bad'}>{outcomeText(outcome, reason)}</b>
      </p>
      <dl class="times">
        {times.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value === null ? 'not sent' : milliseconds(value)}</dd>
          </div>
        ))}
      </dl>
      {command !== null && <Command text={command} />}
      {messages.length === 0 && <p>Its messages are not kept any more. The hub keeps those of the latest calls.</p>}
      <div class="messages">
        {messages.map(({ leg, direction, text, bytes }) => (
          <Message key={leg + direction} title={LEGS[`${leg} ${direction}`]} text={text} bytes={bytes} />
        ))}
      </div>
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
