import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import type { Config } from '../../config/resolve/config.js';
import type { LineOutput } from '../../extras/record/line-queue.js';
import type { RecordedGateway } from '../../extras/record/record-to.js';
import type { Gateway } from '../../gateway/gateway.js';
import { explain } from '../../host/errors/file-error.js';
import type { EventSource } from '../../host/observe/events/events.js';
import { processReports, reportStatus, type StatusReport } from '../../status/status.js';
import type { StatusFacts } from '../../status/status-facts.js';
import { adviseOnSharing, overviewOf, renderOneServer, renderStatus } from '../../status/status-text.js';
import type { HistoryReport } from '../../status/usage-history.js';
import { VERSION } from '../../version.js';
import { suggest } from '../../wire/json/suggest.js';
import type { ClientProfile } from '../../wire/mcp/handshake.js';
import type { Clock } from '../../wire/timing/clock.js';
import type { ClientDescription, GatewayKind, HubDescription, OutputLine, StatusAnswer } from '../control.js';
import type { HubLife } from '../hub-life.js';
import type { ControlCommands, ControlContext } from './control-connection.js';
import type { HubClient, HubClients } from './hub-clients.js';

/** A hub, or another gateway, whose servers are being started. */
export interface RunningHub {
  readonly composition: ServedGateway;
  /** The clients that are attached to a hub. Absent for a gateway that is no hub. */
  readonly clients?: HubClients;
}

export interface ServedGateway extends RecordedGateway {
  readonly gateway: Gateway;
  readonly platform: RecordedGateway['platform'] & { readonly events: EventSource };
  readonly config: Config;
  status(): StatusFacts;
  readonly usage: {
    /** Measures memory and processes of all servers, for the next status. */
    refresh(): Promise<void>;
    history(servers: Iterable<string>): HistoryReport;
  };
  readonly features: {
    /** Texts for programs of the operator by name, such as `metrics`. */
    readonly texts: Readonly<Record<string, () => Promise<string>>>;
    /** Returns the part that answers questions about calls. Absent before the first question. */
    first(name: 'questions'): { answer(id: string, answer: 'yes' | 'no'): boolean } | undefined;
    preload(): Promise<void>;
  };
  outputOf(key: string): readonly OutputLine[];
  /** Restarts all processes of a server. Returns whether there is one. */
  restart(key: string): boolean;
  /** Ends the processes of the user with this principal. A client of the user gets others. */
  forget(user: string): void;
}

export interface HubCommandsOptions {
  /** Resolves when the servers are being started. */
  readonly running: Promise<RunningHub>;
  /** The hub after `running` has resolved, `undefined` before. */
  readonly hub: () => RunningHub | undefined;
  readonly life: { readonly refusal: HubLife['refusal'] };
  readonly platform: { readonly clock: Clock };
  readonly kind: GatewayKind;
  /** The number of a hub; 0 for another gateway. */
  readonly number: number;
  readonly url?: string | undefined;
  /** Start of the process, in milliseconds on the clock. */
  readonly startedAt: number;
  readonly configFile: string;
  readonly logFile: string | null;
}

/** Time between two events of a command that follows the status or a recording. */
const LOOK_EVERY_MS = 1_000;

/** The commands that a user can give to a hub only. */
export function hubCommands({
  running,
  hub,
  life,
  platform,
}: HubCommandsOptions & { readonly life: HubLife }): ControlCommands {
  return {
    /** The profiles of all clients. A command with the profile of a client uses the processes of that client. */
    profiles: () =>
      hub()?.clients?.all.flatMap(({ transport: { profile } }) => {
        if (profile === undefined) return [];
        const { clientInfo, capabilities, protocolVersion } = profile;
        return [{ clientInfo, capabilities, protocolVersion }];
      }) ?? [],
    /** Another hub serves from now on. This hub ends when its clients have moved to the other one. */
    move: async () => {
      const { clients } = await running;
      const size = clients?.size ?? 0;
      life.endAfterClients();
      clients?.move();
      return { clients: size };
    },
    /** Ends the hub at once. A client starts another hub when it has a message to send. */
    stop: () => {
      // Stop in a later turn, so that the answer is written first.
      platform.clock.schedule(0, () => life.stop());
      return { clients: hub()?.clients?.size ?? 0 };
    },
  };
}

/** The commands that a user can give to a hub and to any other gateway. */
export function gatewayCommands(options: HubCommandsOptions): ControlCommands {
  const { running } = options;
  return {
    /** Describes the gateway, its clients and its processes. A hub answers also before its first client has come. */
    describe: async ({ withUsage }) => {
      if (withUsage === true) await options.hub()?.composition.usage.refresh();
      return describe(options);
    },
    /** The status of all servers, or of one. With `follow`, an event with the status every second until the connection is closed. */
    status: async ({ follow, server }, { emit, signal }) => {
      const { composition } = await running;
      await composition.usage.refresh();
      if (typeof server === 'string') return statusOfServer(composition, server);
      if (follow !== true) return statusOf(composition);
      while (!signal.aborted) {
        emit(statusOf(composition));
        await setTimeout(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
      }
      return null;
    },
    /** The report on all servers, or on one server with its last output. */
    report: async ({ server, withUsage }) => {
      const { composition } = await running;
      if (withUsage === true) await composition.usage.refresh();
      return reportStatus(composition.status(), typeof server === 'string' ? server : undefined);
    },
    /** The tools that fit best to the arguments of `trunkline__find_tools`, among those of a view. */
    find: async ({ args, view, folder }) => {
      const { gateway } = (await running).composition;
      const [named, place] = [view, folder].map((each) => (typeof each === 'string' ? each : undefined));
      return await gateway.find(args, named, place);
    },
    /** All metrics, as text for Prometheus. */
    metrics: async () => await (await running).composition.features.texts.metrics?.(),
    restart: async ({ server }) => {
      const { composition } = await running;
      if (composition.restart(String(server))) return null;
      const keys = composition.config.servers.map(({ key }) => key);
      if (composition.status().withoutInstance?.includes(String(server)) === true)
        throw new Error(`Each session starts a process of "${server}" for itself, and none runs now.`);
      throw new Error(
        keys.includes(String(server))
          ? `The server "${server}" has no process that could be restarted: \`trunkline status ${server}\` says why.`
          : noServerText(String(server), composition.config),
      );
    },
    /** Answers the question about a call that waits for a person. Returns false if there is none with this id. */
    answer: async ({ id, allow }) => {
      const { features } = (await running).composition;
      return features.first('questions')?.answer(String(id), allow === true ? 'yes' : 'no') ?? false;
    },
    /** Ends the processes and the connections of a user. */
    forget: async ({ user }) => {
      (await running).composition.forget(String(user));
      return null;
    },
    ...recordingCommands(running),
  };
}

/** Describes the gateway, its clients and its processes. */
export function describe(options: HubCommandsOptions, report?: StatusReport): HubDescription {
  const { life, kind, number, url, startedAt, configFile, logFile } = options;
  const { clock } = options.platform;
  const hub = options.hub();
  return {
    kind,
    pid: process.pid,
    version: VERSION,
    number,
    configFile,
    logFile,
    ...(url !== undefined && { url }),
    ...ageOf(startedAt, clock),
    hasStarted: hub !== undefined,
    isDraining: life.refusal !== undefined,
    clients: hub === undefined ? [] : describeClients(hub, kind, clock),
    ...(hub === undefined ? { servers: [] } : processesOf(hub.composition.status(), report)),
  };
}

function processesOf(facts: StatusFacts, report = reportStatus(facts)) {
  const lacking = report.servers.filter(({ code }) => code === 'TL-VAR-USER');
  const ofUsers = lacking.map(({ server, problem, advice }) => `${server}: ${problem} ${advice}`);
  return { servers: processReports(facts), advice: [...ofUsers, ...adviseOnSharing(report.servers)] };
}

function describeClients({ clients, composition }: RunningHub, kind: GatewayKind, clock: Clock): ClientDescription[] {
  const { gateway } = composition;
  if (clients !== undefined) return clients.all.map((client) => describeAttached(client, gateway, clock));
  return [...gateway.connected].map(([{ inFlight }, { facts, viewName, since }]) => ({
    ...nameOf(facts.profile),
    pid: kind === 'stdio' ? process.pid : null,
    ...ageOf(since, clock),
    inFlight,
    revision: facts.profile.protocolVersion ?? null,
    view: viewName ?? null,
    user: facts.user?.name ?? null,
  }));
}

function describeAttached(
  { hello, since, transport }: HubClient,
  gateway: ServedGateway['gateway'],
  clock: Clock,
): ClientDescription {
  const { profile, inFlight, revision } = transport;
  return {
    ...nameOf(profile),
    pid: hello.pid,
    ...ageOf(since, clock),
    inFlight,
    revision: revision ?? null,
    trunkline: hello.version,
    view: (profile && gateway.viewNameFor({ view: hello.view, profile })) ?? null,
  };
}

function nameOf(profile: ClientProfile | undefined) {
  const { name, version } = profile?.clientInfo ?? {};
  return {
    name: typeof name === 'string' ? name : null,
    version: typeof version === 'string' ? version : null,
  };
}

/** `at` is a time on the clock. */
function ageOf(at: number, clock: Clock): { since: string; uptimeSeconds: number } {
  const ageMs = clock.now() - at;
  return { since: new Date(Date.now() - ageMs).toISOString(), uptimeSeconds: Math.round(ageMs / 1_000) };
}

function statusOf(composition: ServedGateway): StatusAnswer {
  const report = reportStatus(composition.status());
  return { text: renderStatus(report), structure: overviewOf(report) };
}

/** Everything about one server, as the status tool tells it. Throws if there is no such server. */
function statusOfServer(composition: ServedGateway, server: string): StatusAnswer {
  const keys = composition.config.servers.map(({ key }) => key);
  if (!keys.includes(server)) throw new Error(noServerText(server, composition.config));
  const report = reportStatus(composition.status(), server);
  return { text: renderOneServer(report), structure: report };
}

export interface RecordCounts {
  readonly written: number;
  readonly dropped: number;
  /** Reason for which the file cannot be written at the moment. */
  readonly fault?: string | undefined;
}

/** Error text for a command about a server that does not run here. */
function noServerText(server: string, { servers, disabled }: Config): string {
  if (disabled.includes(server))
    return `The server "${server}" is disabled in the configuration; run: trunkline enable ${server}`;
  const keys = servers.map(({ key }) => key);
  const nearest = suggest(server, keys);
  const hint = nearest === undefined ? `Its servers are: ${keys.join(', ')}.` : `Did you mean "${nearest}"?`;
  return `There is no server "${server}". ${hint}`;
}

/** The commands that record and show messages. Their code is loaded at the first such command. */
export function recordingCommands(running: Promise<RunningHub>): ControlCommands {
  const recordings = new Map<string, AbortController>();
  return {
    /** Records all messages to a file until the connection is closed, or until `stopRecording`. */
    record: async ({ file, max }, { emit, signal }) => {
      const name = String(file);
      if (recordings.has(name)) throw new Error(`It records to ${name} already.`);
      const stopped = new AbortController();
      recordings.set(name, stopped);
      try {
        const { composition } = await running;
        // `AbortSignal.any` also covers a connection that is closed already.
        const until = AbortSignal.any([signal, stopped.signal]);
        return await record(composition, name, max, { emit, signal: until });
      } finally {
        recordings.delete(name);
      }
    },
    /** Ends the recording to this file. Its command `record` then gets its result. */
    stopRecording: ({ file }) => recordings.get(String(file))?.abort(),
    /** Shows all messages, or those of one server, until the connection is closed. */
    messages: async ({ server }, { emit, signal }) => {
      const { composition } = await running;
      const { showMessages } = await import('../../extras/record/record-to.js');
      const only = typeof server === 'string' ? server : undefined;
      const keys = composition.config.servers.map(({ key }) => key);
      if (only !== undefined && !keys.includes(only)) throw new Error(noServerText(only, composition.config));
      const shown = showMessages(composition, { sink: toPerson(emit), server: only, onFault: () => {} });
      emit({ begun: true });
      await aborted(signal);
      await shown.close();
      return null;
    },
  };
}

async function record(
  composition: ServedGateway,
  file: string,
  max: unknown,
  { emit, signal }: ControlContext,
): Promise<RecordCounts> {
  const { recordTo } = await import('../../extras/record/record-to.js');
  let fault: string | undefined;
  const warn = ({ err }: { readonly err?: unknown }) => {
    fault = explain(err);
  };
  const context = { composition, logger: { warn } };
  const recorder = await recordTo(file, typeof max === 'number' ? max : undefined, context);
  const counts = (): RecordCounts => {
    const { written, dropped } = recorder.counts;
    return { written, dropped, fault };
  };
  const timer = setInterval(() => emit(counts()), LOOK_EVERY_MS);
  emit(counts());
  await aborted(signal);
  clearInterval(timer);
  await recorder.close();
  return counts();
}

/** Sends each line as an event. After dropped lines, the next event has their number in `missing`. */
function toPerson(emit: ControlContext['emit']): LineOutput {
  let missing = 0;
  return {
    write: async (text) => {
      for (const line of text.split('\n')) {
        if (line === '') continue;
        if (missing > 0 && emit({ missing })) missing = 0;
        if (missing > 0 || !emit({ line })) missing += 1;
      }
    },
    close: async () => {},
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
