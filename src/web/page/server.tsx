import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ServerReport } from '../../status/status.js';
import { duration } from '../../status/status-text.js';
import { describeBytes, plural } from '../../wire/json/printable.js';
import { outcomeText, useCalls } from './calls.js';
import { enable, restart, review } from './changes.js';
import { Help } from './help.js';
import { addressOf, queried } from './route.js';
import { clientsOf, known, latencyText, Measure, processOf, restartsOf } from './servers.js';
import { description, hub, report, revision } from './state.js';
import { link } from './stream.js';
import { clock, matches, milliseconds, when } from './text.js';
import {
  Action,
  Block,
  Card,
  Change,
  foreign,
  Pairs,
  prose,
  Search,
  State,
  Table,
  useRead,
  Waiting,
  whole,
} from './widgets.js';

export function Server({ name }: { name: string }) {
  const server = report.value?.servers.find((each) => each.server === name);
  const isDisabled = hub.value?.kind === 'running' && hub.value.disabled.includes(name);
  return (
    <>
      <p>
        <a href={addressOf('servers')}>All servers</a>
      </p>
      {hub.value === undefined && <Waiting />}
      {isDisabled && server === undefined && (
        <p class="row">
          Disabled in the configuration.
          <Change label="Enable" about={name} kind="primary" run={() => enable(name, true)} />
        </p>
      )}
      {hub.value !== undefined && server === undefined && !isDisabled && <p>No server of this name runs now.</p>}
      {server !== undefined && <Head server={server} />}
      <Output server={name} />
      {server !== undefined && <Details server={server} />}
    </>
  );
}

interface Props {
  server: ServerReport;
}

function Head({ server }: Props) {
  const { server: name, problem, advice, code, cause, approval, tools } = server;
  const hidden = tools.denied.length + tools.quarantined.length;
  return (
    <>
      <div class="row">
        <State state={server.state} />
        <Change label="Restart" about={name} run={() => restart(name)} />
        <Change label="Disable" about={name} run={() => enable(name, false)} />
        {approval !== null && <Action label="Review tools" about={name} run={() => review(name)} />}
        <a href={addressOf('calls', undefined, { server: name })}>Calls</a>
        <a href={addressOf('tools', undefined, { server: name })}>
          {plural(tools.exposed.length, 'tool')} listed{hidden > 0 && `, ${hidden} hidden`}
        </a>
      </div>
      {problem !== '' && <Card level="fail" title={problem} detail={advice} code={code} cause={cause} />}
      {problem === '' && advice !== '' && <Card level="note" title={advice} code={code} />}
    </>
  );
}

function Details({ server }: Props) {
  const { server: name, instances } = server;
  return (
    <>
      <div class="columns">
        <Measure server={name} kind="calls" isWide />
        <Measure server={name} kind="memory" isWide />
        <Measure server={name} kind="cpu" isWide />
      </div>
      <Facts {...server} />
      <Help words={['p50 / p95', 'breaker', 'legacy, modern', 'isolated', 'profile']} />
      {instances.length > 1 && (
        <Table
          caption="Instances"
          rows={instances}
          keyOf={({ id }) => id}
          columns={[
            ['Instance', ({ id }) => id],
            ['State', ({ state }) => <State state={state} />],
            ['Process', ({ pid }) => pid && `pid ${pid}`],
            ['Clients', ({ clients }) => clients, ({ clients }) => clients],
            ['In flight', ({ inFlight }) => inFlight, ({ inFlight }) => inFlight],
            ['Restarts', ({ restarts }) => restarts, ({ restarts }) => restarts],
            ['Memory', ({ memoryBytes }) => known(memoryBytes, describeBytes), ({ memoryBytes }) => memoryBytes],
          ]}
        />
      )}
      <Failures server={name} />
      <Settings server={name} />
    </>
  );
}

function Facts(server: ServerReport) {
  const { lastExit, protocolVersion, era, resourceLimits, sharing, instances } = server;
  const { memoryBytes, processes } = resourceLimits;
  // If there are several instances, the report has these facts about one of them only.
  const isOne = instances.length <= 1;
  const inFlight = instances.reduce((sum, each) => sum + each.inFlight, 0);
  const limits = [
    known(memoryBytes, (bytes) => `${describeBytes(bytes)} of memory`),
    known(processes, (count) => (count === 1 ? '1 process' : `${count} processes`)),
  ];
  const exit = known(lastExit, ({ code, signal, secondsAgo }) => {
    return `${signal ?? `code ${code}`}, ${duration(secondsAgo)} ago`;
  });
  return (
    <Pairs
      rows={[
        ['Process', processOf(server)],
        ['Up', isOne ? known(server.uptimeSeconds, duration) : null],
        ['Restarts', restartsOf(server)],
        ['Last exit', isOne ? exit : null],
        ['Package', server.packageVersion],
        ['Revision', known(protocolVersion, (revision) => (era === null ? revision : `${revision}, ${era.name} era`))],
        ['Clients', clientsOf(server)],
        ['Calls', `${inFlight} in flight${isOne ? `, ${server.queued} waiting, breaker ${server.breaker}` : ''}`],
        ['p50 / p95', latencyText(server.latencyMs)],
        ['Limits', limits.filter((limit) => limit !== null).join(', ') || null],
        ['Sandbox', known(server.sandbox, () => 'confined')],
        ['Sharing', known(sharing, ({ mode, because }) => prose(`${mode}, because ${because}`))],
      ]}
    />
  );
}

/** Table of the known failed calls, also those of the call log, latest first. */
function Failures({ server }: { server: string }) {
  const { failed, since } = useCalls();
  const own = failed.filter((call) => call.server === server).reverse();
  if (since === 0) return null;
  if (own.length === 0) return <p class="quiet">No call has failed since {when(since)}.</p>;
  return (
    <Table
      caption={`Failed calls since ${when(since)}`}
      rows={own}
      keyOf={({ id }) => String(id)}
      columns={[
        ['At', ({ at }) => when(at)],
        ['Call', ({ id, method, name }) => <a href={addressOf('calls', String(id))}>{whole(name ?? method)}</a>],
        ['Client', ({ client }) => client],
        ['Outcome', ({ outcome, reason }) => outcomeText(outcome, reason)],
        ['Took', ({ ms }) => milliseconds(ms), ({ ms }) => ms],
      ]}
    />
  );
}

const SUFFIXES = { server: '', defaults: ' (defaults)', 'built in': '' };

/** Settings in force. At first, the table leaves out the built-in ones. */
function Settings({ server }: { server: string }) {
  const { answer, fault } = useRead('GET /settings', { server }, revision.value);
  const isWhole = useSignal(false);
  if (answer === undefined) return <Waiting fault={fault} />;
  const file = description.value?.configFile.split(/[\\/]/).at(-1);
  const toggle = () => {
    isWhole.value = !isWhole.value;
  };
  return (
    <>
      <Table
        caption="Settings in force"
        rows={answer.filter(({ from }) => isWhole.value || from !== 'built in')}
        keyOf={({ name, from }) => `${name} ${from}`}
        columns={[
          ['Setting', ({ name }) => <code>{whole(name)}</code>],
          ['Value', ({ value }) => value],
          ['From', ({ from, line }) => (line === null ? from : `${file}, line ${line}${SUFFIXES[from]}`)],
        ]}
      />
      <button type="button" class="more" aria-pressed={isWhole.value} onClick={toggle}>
        Show built-in settings
      </button>
    </>
  );
}

const READ_EVERY_MS = 1_000;

/** Output of the server. It is not read again while a person reads earlier lines. */
function Output({ server }: { server: string }) {
  const follows = useSignal(true);
  const box = useRef<HTMLElement>(null);
  const isThere = report.value !== undefined;
  const { answer, fault, load } = useRead('GET /output', { server }, '', isThere);
  useEffect(() => {
    const look = () => {
      if (follows.value && isThere && link.value === 'live') void load();
    };
    const timer = setInterval(look, READ_EVERY_MS);
    return () => clearInterval(timer);
  }, [server, isThere]);
  useEffect(() => {
    if (follows.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  });
  // Scrolling up ends the following, so that reading is not disturbed. Scrolling to the end begins it again.
  const scrolled = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
    follows.value = scrollHeight - scrollTop - clientHeight < 8;
  };
  const toggle = () => {
    follows.value = !follows.value;
  };
  const lines = answer?.filter(({ text }) => matches(text, queried('words')));
  return (
    <section>
      <div class="head">
        <h2>Output</h2>
        <Search label="Filter the output" />
        <button type="button" aria-pressed={follows.value} onClick={toggle}>
          Follow
        </button>
      </div>
      <Block label="Output" kind="output" box={box} onScroll={scrolled}>
        {lines === undefined && (isThere ? foreign(fault ?? '…') : 'No hub runs.')}
        {lines?.map(({ at, text, isStart }, index) => (
          <div key={index} class={isStart && 'start'}>
            <time>{clock(at)}</time> {foreign(text)}
          </div>
        ))}
        {lines?.length === 0 && 'No line.'}
      </Block>
    </section>
  );
}
