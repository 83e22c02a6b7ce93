import { listProcesses, reportStatus } from '../gateway/status/status.js';
import { overviewOf } from '../gateway/status/status-report.js';
import { renderStatus } from '../gateway/status/status-text.js';
import type { ClientDescription, HubDescription, StatusAnswer } from '../hub/hub-answers.js';
import type { HubLife } from '../hub/hub-life.js';
import { numberOf } from '../hub/place.js';
import type { ControlCommands } from '../hub/server/control-connection.js';
import type { HubClient } from '../hub/server/hub-clients.js';
import type { Clock } from '../timing/clock.js';
import { VERSION } from '../version.js';
import type { Composition } from './composition.js';
import type { Platform } from './platform.js';
import { noServerText, recordingCommands } from './recording-commands.js';
import type { RunningHub } from './serve-hub.js';

export interface HubCommandsOptions {
  /** Resolves when the servers are being started. */
  readonly running: Promise<RunningHub>;
  /** The same, once it has resolved. */
  readonly hub: () => RunningHub | undefined;
  readonly life: HubLife;
  readonly platform: Pick<Platform, 'clock'>;
  /** The folder of this hub, whose name is its number. */
  readonly place: string;
  /** When the process started, in milliseconds on the clock. */
  readonly startedAt: number;
  readonly configFile: string;
  readonly logFile: string;
}

/** Time between two looks at the status for somebody who follows it. */
const LOOK_EVERY_MS = 1_000;

/** The commands that a person can give to a running hub. */
export function hubCommands(options: HubCommandsOptions): ControlCommands {
  const { running, life, platform, startedAt } = options;
  const { clock } = platform;
  return {
    /** What the hub is, and whom it serves. Answered at once, also before the first client has come. */
    describe: async ({ withUsage }): Promise<HubDescription> => {
      const hub = options.hub();
      if (withUsage === true) await hub?.composition.readUsage();
      const { place, configFile, logFile } = options;
      return {
        ...{ pid: process.pid, version: VERSION, number: numberOf(place), configFile, logFile },
        ...ageOf(startedAt, clock),
        hasStarted: hub !== undefined,
        isDraining: life.refusal !== undefined,
        clients: hub?.clients.all.map((client) => describeClient(client, clock)) ?? [],
        servers: hub === undefined ? [] : listProcesses(hub.composition.status()),
      };
    },
    /** The status of all servers, and with `follow` again every second until the connection is closed. */
    status: async ({ follow }, { emit, signal }) => {
      const { composition } = await running;
      if (follow !== true) return statusOf(composition);
      while (!signal.aborted) {
        emit(statusOf(composition));
        await pause(clock, signal);
      }
      return null;
    },
    /** Everything that is known of all servers, or of one with its last output. */
    report: async ({ server }) => {
      const { composition } = await running;
      return reportStatus(composition.status(), typeof server === 'string' ? server : undefined);
    },
    /** The profiles of all clients: with one of them, a command uses the same processes as that client. */
    profiles: () =>
      options.hub()?.clients.all.flatMap(({ transport: { profile } }) => {
        if (profile === undefined) return [];
        const { clientInfo, capabilities, protocolVersion } = profile;
        return [{ clientInfo, capabilities, protocolVersion }];
      }) ?? [],
    restart: async ({ server }) => {
      const { composition } = await running;
      if (composition.restart(String(server))) return null;
      const keys = composition.config.servers.map(({ key }) => key);
      throw new Error(
        keys.includes(String(server))
          ? `The server "${server}" cannot be started, because its entry in the configuration is wrong: \`trunkline status\` says how.`
          : noServerText(String(server), keys),
      );
    },
    ...recordingCommands(running),
    /** Another hub serves from now on: this one ends when its clients have moved there. */
    move: async () => {
      const { clients } = await running;
      const { size } = clients;
      life.endAfterClients();
      clients.move();
      return { clients: size };
    },
    /** Ends at once. A client starts another hub when it needs one. */
    stop: () => {
      // The answer is written before the process can end.
      clock.schedule(0, () => life.stop());
      return { clients: options.hub()?.clients.size ?? 0 };
    },
  };
}

function describeClient({ hello, since, transport }: HubClient, clock: Clock): ClientDescription {
  const { profile, inFlight, revision } = transport;
  const { name, version } = profile?.clientInfo ?? {};
  return {
    name: typeof name === 'string' ? name : null,
    version: typeof version === 'string' ? version : null,
    pid: hello.pid,
    ...ageOf(since, clock),
    inFlight,
    revision: revision ?? null,
    trunkline: hello.version,
  };
}

/** `at` is a time on the clock. */
function ageOf(at: number, clock: Clock): { since: string; uptimeSeconds: number } {
  const ageMs = clock.now() - at;
  return { since: new Date(Date.now() - ageMs).toISOString(), uptimeSeconds: Math.round(ageMs / 1_000) };
}

function statusOf(composition: Composition): StatusAnswer {
  const report = reportStatus(composition.status());
  return { text: renderStatus(report), structure: overviewOf(report) };
}

function pause(clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      cancel();
      signal.removeEventListener('abort', over);
      resolve();
    };
    const cancel = clock.schedule(LOOK_EVERY_MS, over);
    signal.addEventListener('abort', over);
  });
}
