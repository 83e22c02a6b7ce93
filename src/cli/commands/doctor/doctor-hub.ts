import { setTimeout } from 'node:timers/promises';
import type { GlobalOptions } from '../../../app/global-options.js';
import type { HubControl, NoControl } from '../../../hub/attach/control-client.js';
import { hubLog, inspectHubFolder } from '../../../hub/hub-folder.js';
import type { ExaminedHub } from '../../../setup/doctor/hub.js';
import { userDataFolder, userHubsFolder } from '../../../state/user-files.js';
import type { ServerReport, StatusReport } from '../../../status/status.js';
import type { ToolRow } from '../../../status/tool-report.js';
import { listAllTools } from '../calls/listed-tools.js';
import { connectToHub, describeHub, openGateway } from '../hub/hub-access.js';
import { openHubClient } from '../hub/hub-client.js';
import { notedPid } from '../hub/running.js';

/**
 * The hub of a configuration, whether it runs or not. Requests to it start and create nothing. Without a hub, another gateway of the
 * configuration reports servers and tools, because the servers must not run twice.
 */
export interface DoctorHub extends ExaminedHub {
  /** Absent if no hub has ever run, or if TRUNKLINE_HUB is `off`. */
  readonly logFile: string | undefined;
  /** Asks the running gateway for the reports of its servers. Resolves with `undefined` if none has started its servers. */
  readonly servers: () => Promise<readonly ServerReport[] | undefined>;
  /** Asks the running gateway for its list of tools, as JSON and as rows. Resolves with `undefined` if it does not answer. */
  readonly tools: () => Promise<{ readonly list: string; readonly rows: readonly ToolRow[] } | undefined>;
  readonly close: () => void;
}

/** Time limit for answers of the hub. A hub that is starting may need longer, but the doctor does not wait for it. */
const ANSWER_WITHIN_MS = 2_500;

/**
 * Finds the hub of this configuration, and connects to it if it runs. `named` is the value of `--gateway`, and names the only gateway that
 * is asked about servers and tools.
 */
export async function openDoctorHub(configFile: string, named?: string): Promise<DoctorHub> {
  const settings = { config: configFile, gateway: named, verbosity: 0, logFile: undefined };
  const site = { configFile, dataFolder: userDataFolder(), hubsFolder: userHubsFolder() };
  const { folder, faults } =
    process.env.TRUNKLINE_HUB === 'off' ? { folder: undefined, faults: [] } : inspectHubFolder(site);
  const tools = async () => await listTools(settings);
  const ofAnother = async () => await reportOfAnother(settings);
  const absent: DoctorHub = {
    folder,
    faults,
    state: { kind: 'not running' },
    isAlive: async () => false,
    close: () => {},
    logFile: undefined,
    servers: ofAnother,
    tools,
  };
  if (folder === undefined) return absent;
  const control = await connectSoon(folder);
  const known = { ...absent, logFile: hubLog(folder), isAlive: (number: number) => isAlive(folder, number) };
  if (control === 'not running' || control === 'refused') return { ...known, state: { kind: control } };
  const silent = { ...known, state: { kind: 'silent', pid: notedPid(folder) } } as const;
  if (control === 'silent') return silent;
  // The hub may end meanwhile.
  const hub = await withinTime(describeHub(control).catch(() => undefined));
  if (hub === undefined) return silent;
  const report = async () => ((await control.request('report', { withUsage: true })) as StatusReport).servers;
  return {
    ...known,
    state: { kind: 'running', hub },
    logFile: hub.logFile ?? undefined,
    servers: named !== undefined ? ofAnother : async () => (hub.hasStarted ? await report() : undefined),
    close: () => control.close(),
  };
}

/** The reports of the named gateway, or of one that is no hub and serves the configuration. */
async function reportOfAnother(settings: GlobalOptions): ReturnType<DoctorHub['servers']> {
  const open = await openGateway(settings);
  if ('because' in open) return undefined;
  const { control, gateway, hasStarted, report } = open;
  try {
    if ((gateway.kind === 'hub' && settings.gateway === undefined) || !hasStarted) return undefined;
    return (await report({ withUsage: true })).servers;
  } finally {
    control.close();
  }
}

async function connectSoon(folder: string, number?: number): Promise<HubControl | NoControl> {
  const reaching = connectToHub(folder, number);
  const control = await withinTime(reaching);
  if (control !== undefined) return control;
  void reaching.then((late) => typeof late === 'string' || late.close());
  return 'silent';
}

async function isAlive(folder: string, number: number): Promise<boolean> {
  const control = await connectSoon(folder, number);
  if (typeof control !== 'string') control.close();
  return control !== 'not running';
}

async function listTools(settings: GlobalOptions): ReturnType<DoctorHub['tools']> {
  const hub = await openHubClient(settings);
  if (hub === undefined || typeof hub === 'string') return undefined;
  try {
    const [list, views] = await Promise.all([listAllTools(hub.client), hub.views()]);
    return { list, rows: views.find(({ name }) => name === '')?.tools ?? [] };
  } finally {
    hub.close();
  }
}

/** Resolves with the result, or with `undefined` if it takes too long. */
async function withinTime<T>(result: Promise<T>): Promise<T | undefined> {
  return await Promise.race([result, setTimeout(ANSWER_WITHIN_MS, undefined, { ref: false })]);
}
