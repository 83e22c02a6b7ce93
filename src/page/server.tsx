import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { ServerReport } from '../gateway/status/status.js';
import { duration, plural } from '../gateway/status/status-text.js';
import { describeBytes } from '../json/printable.js';
import { outcomeText } from './calls.js';
import { enable, restart, review } from './changes.js';
import { Help } from './help.js';
import { addressOf, route } from './route.js';
import { known, LEAST_CPU, LEAST_MEMORY, latencyText, processOf, restartsOf } from './servers.js';
import { cpuOf, hello, hub, memoryOf, output, report, revision, usage } from './state.js';
import { clock, matches, milliseconds, type Point } from './text.js';
import {
  Action,
  Block,
  Card,
  Change,
  foreign,
  Line,
  NONE,
  prose,
  Search,
  State,
  Table,
  topOf,
  useRead,
  Waiting,
} from './widgets.js';

/** Everything about one server. */
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
  return (
    <>
      <div class="row">
        <State state={server.state} />
        <Change label="Restart" about={name} run={() => restart(name)} />
        <Change label="Disable" about={name} run={() => enable(name, false)} />
        {approval !== null && <Action label="Review tools" about={name} run={() => review(name)} />}
        <a href={addressOf('calls', undefined, { server: name })}>Calls</a>
        <a href={addressOf('tools', undefined, { server: name })}>{plural(tools.exposed.length, 'tool')} listed</a>
      </div>
      {problem !== '' && <Card level="fail" title={problem} detail={advice} code={code} cause={cause} />}
      {problem === '' && advice !== '' && <Card level="note" title={advice} code={code} />}
    </>
  );
}

function Details({ server }: Props) {
  const { server: name, tools, instances } = server;
  const hidden = [
    ...tools.denied.map((tool) => ({ name: tool, reason: '`tools` in the configuration leaves it out' })),
    ...tools.quarantined,
  ];
  return (
    <>
      <Usage server={server} />
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
            [
              'Memory',
              ({ id, memoryBytes }) => known(usage.value.instances.get(id)?.memoryBytes ?? memoryBytes, describeBytes),
              ({ memoryBytes }) => memoryBytes,
            ],
          ]}
        />
      )}
      {hidden.length > 0 && (
        <Table
          caption="Tools that are not shown"
          rows={hidden}
          keyOf={({ name: tool, reason }) => tool + reason}
          columns={[
            ['Tool', (tool) => tool.name],
            ['Why', ({ reason }) => prose(reason)],
          ]}
        />
      )}
      <Failures key={`failures of ${name}`} server={server} />
      <FromHub key={name} server={server} />
    </>
  );
}

function Usage({ server }: Props) {
  const { memory, cpu } = usage.value.servers.get(server.server) ?? {};
  return (
    <div class="columns">
      <Measure title="Memory" value={memoryOf(server)} points={memory} least={LEAST_MEMORY} text={describeBytes} />
      <Measure title="Processor" value={cpuOf(server)} points={cpu} least={LEAST_CPU} text={(value) => `${value} %`} />
    </div>
  );
}

function Measure(props: {
  title: string;
  value: number | null;
  points: readonly Point[] | undefined;
  least: number;
  text: (value: number) => string;
}) {
  const { title, value, points, least, text } = props;
  return (
    <section class="usage">
      <h2>{title}</h2>
      <p class="figure">
        {known(value, text) ?? NONE} <small class="quiet">Top of the line: {text(topOf(points, least))}</small>
      </p>
      <Line points={points} least={least} isWide />
    </section>
  );
}

function Facts(server: ServerReport) {
  const { memoryBytes, processes } = server.resourceLimits;
  const limits = [
    known(memoryBytes, (bytes) => `${describeBytes(bytes)} of memory`),
    known(processes, (count) => plural(count, 'process').replace(/ss$/, 'sses')),
  ];
  const facts: readonly (readonly [string, ComponentChildren])[] = [
    ['Process', processOf(server)],
    ['Up', known(server.uptimeSeconds, duration)],
    ['Restarts', String(restartsOf(server))],
    [
      'Last exit',
      known(
        server.lastExit,
        ({ code, signal, secondsAgo }) => `${signal ?? `code ${code}`}, ${duration(secondsAgo)} ago`,
      ),
    ],
    ['Package', server.packageVersion],
    [
      'Revision',
      known(
        server.protocolVersion,
        (revision) => `${revision}${known(server.era, ({ name }) => `, ${name} era`) ?? ''}`,
      ),
    ],
    ['Calls', `${server.inFlight} in flight, ${server.queued} waiting, breaker ${server.breaker}`],
    ['p50 / p95', latencyText(server.latencyMs)],
    ['Limits', limits.filter((limit) => limit !== null).join(', ') || null],
    ['Sharing', known(server.sharing, ({ mode, because }) => prose(`${mode}, because ${because}`))],
  ];
  return (
    <dl>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === 'string' ? foreign(value) : (value ?? NONE)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Failed calls since a page was opened. Read again when calls have run. */
function Failures({ server: { server, calls, inFlight } }: Props) {
  const { answer } = useRead('/failures', { server }, `${calls} ${inFlight}`);
  if (answer === undefined) return null;
  const since = `since ${clock(answer.since)}`;
  if (answer.calls.length === 0) return <p class="quiet">No call has failed {since}.</p>;
  return (
    <Table
      caption={`Failed calls ${since}`}
      rows={answer.calls}
      keyOf={({ id }) => String(id)}
      columns={[
        ['At', ({ at }) => clock(at)],
        ['Call', ({ id, method, name }) => <a href={addressOf('calls', String(id))}>{foreign(name ?? method)}</a>],
        ['Client', ({ client }) => client],
        ['Outcome', ({ outcome, reason }) => outcomeText(outcome, reason)],
        ['Took', ({ ms }) => milliseconds(ms), ({ ms }) => ms],
      ]}
    />
  );
}

/** Settings, for which the page asks: at first those that are not built in. */
function FromHub({ server }: Props) {
  const { answer, fault } = useRead('/server', { server: server.server }, revision.value);
  const isWhole = useSignal(false);
  if (answer === undefined) return <Waiting fault={fault} />;
  const file = hello.value?.configFile.split(/[\\/]/).at(-1);
  const settings = answer.settings.filter(({ from }) => isWhole.value || from !== 'built in');
  const toggle = () => {
    isWhole.value = !isWhole.value;
  };
  return (
    <>
      <Table
        caption="Settings in force"
        rows={settings}
        keyOf={({ name }) => name}
        columns={[
          ['Setting', ({ name }) => <code>{foreign(name)}</code>],
          ['Value', ({ value }) => value],
          [
            'From',
            ({ from, line }) =>
              line === null ? from : `${file}, line ${line}${from === 'server' ? '' : ` (${from})`}`,
          ],
        ]}
      />
      <button type="button" class="more" aria-pressed={isWhole.value} onClick={toggle}>
        Show built-in settings
      </button>
    </>
  );
}

/** Output of the server, which arrives while it is shown. */
function Output({ server }: { server: string }) {
  const follows = useSignal(true);
  const box = useRef<HTMLElement>(null);
  const words = route.value.query.get('words') ?? '';
  const { lines, left } = output.value.server === server ? output.value : { lines: undefined, left: 0 };
  const shown = lines?.filter(({ text }) => matches(text, words));
  useEffect(() => {
    if (follows.value && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  });
  // Scrolling up ends the following, so that reading is not disturbed. Scrolling to the end begins it again.
  const scrolled = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
    follows.value = scrollHeight - scrollTop - clientHeight < 8;
  };
  return (
    <section>
      <div class="head">
        <h2>Output</h2>
        <Search label="Filter the output" />
        <button
          type="button"
          aria-pressed={follows.value}
          onClick={() => {
            follows.value = !follows.value;
          }}
        >
          Follow
        </button>
      </div>
      {left > 0 && <p class="quiet">{plural(left, 'line')} more, not shown</p>}
      <Block label="Output" kind="output" box={box} onScroll={scrolled}>
        {shown?.map(({ number, at, text, isStart }) => (
          <div key={number} class={isStart && 'start'}>
            <time>{clock(at)}</time> {foreign(text)}
          </div>
        )) ?? '…'}
        {shown?.length === 0 && 'No line.'}
      </Block>
    </section>
  );
}
