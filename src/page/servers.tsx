import type { ServerReport } from '../gateway/status/status.js';
import { describeBytes } from '../json/printable.js';
import { enable, restart } from './changes.js';
import { Help } from './help.js';
import { addressOf } from './route.js';
import { cpuOf, hub, memoryOf, toneOf, usage } from './state.js';
import { milliseconds } from './text.js';
import { Change, type Column, Line, NONE, prose, State, Table, Waiting, whole } from './widgets.js';

/** Tops of lines whose values are all small. */
export const LEAST_MEMORY = 64 * 1024 * 1024;
export const LEAST_CPU = 25;

const COLUMNS: readonly Column<ServerReport>[] = [
  ['Server', ({ server }) => <ServerLink server={server} />],
  ['State', (server) => <StateAndRestart {...server} />],
  ['Process', processOf],
  ['Revision', ({ protocolVersion }) => known(protocolVersion, whole)],
  ['Tools', ({ tools }) => tools.exposed.length, ({ tools }) => tools.exposed.length],
  ['Calls/min', rateOf, rateOf],
  ['p50 / p95', ({ latencyMs }) => latencyText(latencyMs), ({ latencyMs }) => latencyMs?.p95 ?? null],
  ['Memory', ({ server }) => <Memory server={server} />, ({ server }) => memoryOf(server)],
  ['Processor', ({ server }) => <Processor server={server} />, ({ server }) => cpuOf(server)],
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
  return (
    <a href={addressOf('servers', server)} data-row>
      {whole(server)}
    </a>
  );
}

function StateAndRestart({ server, state }: ServerReport) {
  return (
    <span class="row">
      <State state={state} />
      {toneOf(state) === 'bad' && <Change label="Restart" about={server} run={() => restart(server)} />}
    </span>
  );
}

function Memory({ server }: { server: string }) {
  return (
    <span class="measured">
      <Line points={usage.value.servers.get(server)?.memory} least={LEAST_MEMORY} />
      <span>{known(memoryOf(server), describeBytes) ?? NONE}</span>
    </span>
  );
}

function Processor({ server }: { server: string }) {
  return (
    <span class="measured">
      <Line points={usage.value.servers.get(server)?.cpu} least={LEAST_CPU} />
      <span>{known(cpuOf(server), (value) => `${value} %`) ?? NONE}</span>
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
