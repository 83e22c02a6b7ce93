import type { ServerReport } from '../gateway/status/status.js';
import { describeBytes } from '../json/printable.js';
import { enable, restart } from './changes.js';
import { Help } from './help.js';
import { addressOf } from './route.js';
import { cpuOf, hub, memoryOf, toneOf, usage } from './state.js';
import { milliseconds } from './text.js';
import { Change, type Column, Line, NONE, prose, State, Table, topOf, Waiting, whole } from './widgets.js';

/** Use of a server that is shown as a line. `least` is the top of a line whose values are all small. */
const MEASURES = {
  memory: { title: 'Memory', of: memoryOf, text: describeBytes, least: 64 * 1024 * 1024 },
  cpu: { title: 'Processor', of: cpuOf, text: (value: number) => `${value} %`, least: 25 },
};

const COLUMNS: readonly Column<ServerReport>[] = [
  ['Server', ({ server }) => <ServerLink server={server} />],
  ['State', (server) => <StateAndRestart {...server} />],
  ['Process', processOf],
  ['Revision', ({ protocolVersion }) => known(protocolVersion, whole)],
  ['Tools', ({ tools }) => tools.exposed.length, ({ tools }) => tools.exposed.length],
  ['Calls/min', rateOf, rateOf],
  ['p50 / p95', ({ latencyMs }) => latencyText(latencyMs), ({ latencyMs }) => latencyMs?.p95 ?? null],
  ['Memory', ({ server }) => <Measure server={server} kind="memory" />, ({ server }) => memoryOf(server)],
  ['Processor', ({ server }) => <Measure server={server} kind="cpu" />, ({ server }) => cpuOf(server)],
  ['Restarts', restartsOf, restartsOf],
  ['Instances', ({ instances }) => instances.length, ({ instances }) => instances.length],
  ['Clients', clientsOf, clientsOf],
];

export function known<T, R>(value: T | null | undefined, text: (value: T) => R): R | null {
  return value === null || value === undefined ? null : text(value);
}

export function latencyText(latency: ServerReport['latencyMs']): string | null {
  return known(latency, ({ p50, p95 }) => `${milliseconds(p50)} / ${milliseconds(p95)}`);
}

function rateOf({ server }: ServerReport): number | null {
  return usage.value.servers.get(server)?.callsPerMinute ?? null;
}

function clientsOf({ instances }: ServerReport): number {
  return instances.reduce((sum, { clients }) => sum + clients, 0);
}

/** Process of a server, or the number of its processes. */
export function processOf({ remote, instances }: ServerReport): string | null {
  const pids = instances.flatMap(({ pid }) => pid ?? []);
  if (remote) return 'behind a URL';
  return pids.length > 1 ? `${pids.length} processes` : known(pids[0], (pid) => `pid ${pid}`);
}

export function restartsOf({ instances }: ServerReport): number {
  return instances.reduce((sum, { restarts }) => sum + restarts, 0);
}

export function ServerLink({ server }: { server: string }) {
  return <a href={addressOf('servers', server)}>{whole(server)}</a>;
}

function StateAndRestart({ server, state }: ServerReport) {
  return (
    <span class="row">
      <State state={state} />
      {toneOf(state) === 'bad' && <Change label="Restart" about={server} run={() => restart(server)} />}
    </span>
  );
}

/** A value with its line: beside it in a table, or below it. */
export function Measure(props: { server: string; kind: keyof typeof MEASURES; isWide?: boolean }) {
  const { server, kind, isWide = false } = props;
  const { title, of, text, least } = MEASURES[kind];
  const points = usage.value.servers.get(server)?.[kind];
  const value = known(of(server), text) ?? NONE;
  const line = <Line points={points} least={least} isWide={isWide} />;
  return isWide ? (
    <section class="usage">
      <h2>{title}</h2>
      <p class="figure">
        {value} <small class="quiet">Top of the line: {text(topOf(points, least))}</small>
      </p>
      {line}
    </section>
  ) : (
    <span class="measured">
      {line}
      <span>{value}</span>
    </span>
  );
}

export function Servers() {
  const state = hub.value;
  switch (state?.kind) {
    case undefined:
      return <Waiting />;
    case 'waiting':
      return <p>The hub starts its servers when its first client comes.</p>;
    case 'running':
      if (state.report.servers.length + state.disabled.length === 0)
        return <p>{prose('No server is configured. `trunkline add` adds one.')}</p>;
      return (
        <>
          <Table
            caption="Lines begin when this page is opened, and show up to 15 minutes."
            columns={COLUMNS}
            rows={state.report.servers}
            keyOf={({ server }) => server}
          />
          {state.disabled.length > 0 && (
            <Table
              caption="Disabled in the configuration"
              rows={state.disabled}
              keyOf={(server) => server}
              columns={[
                ['Server', (server) => <ServerLink server={server} />],
                ['Change', (server) => <Change label="Enable" about={server} run={() => enable(server, true)} />],
              ]}
            />
          )}
          <Help words={['parked', 'failed', 'silent', 'revision', 'p50 / p95', 'instance']} />
        </>
      );
    case 'none':
      return (
        <Table
          caption="Servers of the configuration"
          rows={state.servers}
          keyOf={({ server }) => server}
          columns={[
            ['Server', ({ server }) => server],
            ['Command or URL', ({ runs }) => runs],
            ['State', ({ isDisabled }) => (isDisabled ? 'disabled' : 'not running')],
          ]}
        />
      );
  }
}
