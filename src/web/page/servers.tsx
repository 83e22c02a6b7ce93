import { computed } from '@preact/signals';
import type { ServerReport } from '../../status/status.js';
import { STATE_WORDS } from '../../status/status-text.js';
import { describeBytes, plural } from '../../wire/json/printable.js';
import type { ConfiguredServer } from '../server/contract.js';
import { enable, restart } from './changes.js';
import { Help } from './help.js';
import { callRate, spanOf, topOf, untilNow } from './lines.js';
import { addressOf, queried } from './route.js';
import { brokenFirst, FILTER_ABOVE, filterServers, toneOf } from './servers-list.js';
import { cpuOf, history, hub, memoryOfServer } from './state.js';
import { matches, milliseconds, number } from './text.js';
import {
  Change,
  Choice,
  type Column,
  Line,
  NONE,
  optionsOf,
  prose,
  Search,
  State,
  Table,
  Waiting,
  whole,
} from './widgets.js';

/** Measures of a server that are shown as lines. `least` is the smallest value at the top of a line. */
const MEASURES = {
  calls: { title: 'Calls a minute', of: rateOf, text: number, least: 5 },
  memory: { title: 'Memory', of: memoryOfServer, text: describeBytes, least: 64 * 1024 * 1024 },
  cpu: { title: 'Processor', of: cpuOf, text: (value: number) => `${value} %`, least: 25 },
};
type Kind = keyof typeof MEASURES;

function measured(title: string, kind: Kind, rank?: 'medium'): Column<ServerReport> {
  const { of } = MEASURES[kind];
  return [title, ({ server }) => <Measure server={server} kind={kind} />, ({ server }) => of(server), rank];
}

/** Columns that a narrow window leaves out are in the page of the server, too. */
const COLUMNS: readonly Column<ServerReport>[] = [
  ['Server', ({ server }) => <ServerLink server={server} />],
  ['State', (server) => <StateAndRestart {...server} />],
  ['Process', processOf, undefined, 'wide'],
  ['Revision', ({ protocolVersion }) => known(protocolVersion, whole), undefined, 'wide'],
  ['Tools', ({ tools }) => tools.exposed.length, ({ tools }) => tools.exposed.length],
  measured('Calls/min', 'calls'),
  ['p50 / p95', ({ latencyMs }) => latencyText(latencyMs), ({ latencyMs }) => latencyMs?.p95 ?? null, 'medium'],
  measured('Memory', 'memory'),
  measured('Processor', 'cpu', 'medium'),
  ['Restarts', restartsOf, restartsOf],
  ['Instances', ({ instances }) => instances.length, ({ instances }) => instances.length, 'wide'],
  ['Clients', clientsOf, clientsOf, 'wide'],
];

export function known<T, R>(value: T | null | undefined, text: (value: T) => R): R | null {
  return value === null || value === undefined ? null : text(value);
}

export function latencyText(latency: ServerReport['latencyMs']): string | null {
  return known(latency, ({ p50, p95 }) => `${milliseconds(p50)} / ${milliseconds(p95)}`);
}

const histories = computed(() => new Map(history.value?.servers.map((each) => [each.server, each])));

/** Calls in the last minute; null if they are unknown. */
function rateOf(server: string): number | null {
  const own = histories.value.get(server);
  return history.value === undefined || own === undefined ? null : callRate(history.value, own);
}

export function clientsOf({ instances }: ServerReport): number {
  return instances.reduce((sum, { clients }) => sum + clients, 0);
}

/** Pid of a server, or the number of its processes. */
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
export function Measure(props: { server: string; kind: Kind; isWide?: boolean }) {
  const { server, kind, isWide = false } = props;
  const { title, of, text, least } = MEASURES[kind];
  const now = of(server);
  const values = untilNow(histories.value.get(server)?.[kind] ?? [], now);
  const line = <Line values={values} least={least} isWide={isWide} />;
  return isWide ? (
    <section class="usage">
      <h2>{title}</h2>
      <p class="figure">
        {known(now, text) ?? NONE}
        <small class="quiet">
          Up to {text(topOf(values, 0))} in the {spanOf(values)}
        </small>
      </p>
      {line}
    </section>
  ) : (
    <span class="measured">
      {line}
      <span>{known(now, text) ?? NONE}</span>
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
      return <Running servers={state.report.servers} disabled={state.disabled} />;
    case 'none':
      return <Configured servers={state.servers} />;
  }
}

const NO_SERVER =
  'No server is configured. `trunkline add` adds one, and `trunkline init` takes over those of your MCP clients.';

function Running({ servers, disabled }: { servers: readonly ServerReport[]; disabled: readonly string[] }) {
  const count = servers.length + disabled.length;
  const words = queried('words');
  const state = queried('state');
  const [latest] = history.value?.servers ?? [];
  const lines = latest === undefined ? '' : spanOf(latest.calls);
  if (count === 0) return <p>{prose(NO_SERVER)}</p>;
  const states = [...servers.map((server) => STATE_WORDS[server.state]), ...disabled.map(() => DISABLED)];
  const found = filterServers(servers, words, state);
  const foundDisabled = disabled.filter(
    (server) => matches(`${server} ${DISABLED}`, words) && ['', DISABLED].includes(state),
  );
  return (
    <>
      <Filter count={count} found={found.length + foundDisabled.length} states={states} />
      {found.length > 0 && (
        <Table
          caption={`Broken servers first${lines === '' ? '' : `; lines show the ${lines}`}`}
          kind="servers cards"
          columns={COLUMNS}
          rows={brokenFirst(found)}
          keyOf={({ server }) => server}
        />
      )}
      {foundDisabled.length > 0 && (
        <Table
          caption="Disabled in the configuration"
          rows={foundDisabled}
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
}

const DISABLED = 'disabled';

/** The filter of a long list. It stays while it hides servers. */
function Filter({ count, found, states }: { count: number; found: number; states: readonly string[] }) {
  if (count <= FILTER_ABOVE && found === count) return null;
  return (
    <>
      <search class="filters">
        <Search label="Filter the servers" />
        <Choice label="State" name="state" options={optionsOf('any state', 'state', states)} />
      </search>
      {found < count && (
        <p class="quiet" role="status">
          {found === 0 ? 'No server matches the filter.' : `${found} of ${plural(count, 'server')}.`}
        </p>
      )}
    </>
  );
}

function Configured({ servers }: { servers: readonly ConfiguredServer[] }) {
  const stateOf = ({ isDisabled }: ConfiguredServer) => (isDisabled ? DISABLED : 'not running');
  const words = queried('words');
  const state = queried('state');
  if (servers.length === 0) return <p>{prose(NO_SERVER)}</p>;
  const found = servers.filter(
    (each) => matches(`${each.server} ${each.runs} ${stateOf(each)}`, words) && ['', stateOf(each)].includes(state),
  );
  return (
    <>
      <Filter count={servers.length} found={found.length} states={servers.map(stateOf)} />
      <Table
        caption="Servers of the configuration"
        rows={found}
        keyOf={({ server }) => server}
        columns={[
          ['Server', ({ server }) => server],
          ['Command or URL', ({ runs }) => runs],
          ['State', stateOf],
        ]}
      />
    </>
  );
}
