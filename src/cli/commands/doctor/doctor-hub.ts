import type { HubFacts } from '../../../doctor/hub.js';
import type { ServerReport, StatusReport } from '../../../gateway/status/status.js';
import type { HubControl, NoControl } from '../../../hub/attach/control-client.js';
import type { HubDescription } from '../../../hub/control.js';
import { hubLog, inspectHubFolder } from '../../../hub/hub-folder.js';
import { userDataFolder, userHubsFolder } from '../../../state/user-files.js';
import { notedPid, openHubClient, reachHub } from '../../hub-client.js';
import { listAllTools } from '../calls/tools.js';

/** The hub of a configuration, running or not. Asking for it starts nothing and creates nothing. */
export interface DoctorHub {
  /** Why no hub can run, as phrases. */
  readonly faults: readonly string[];
  /** Absent if no hub has ever run. */
  readonly facts: HubFacts | undefined;
  readonly logFile: string | undefined;
  /** Whether the hub answers, does not answer although it runs, or does not run. */
  readonly state: 'running' | 'silent' | 'absent';
  /** Asks the running hub for the reports of its servers; `undefined` if it has started none yet. */
  readonly servers: () => Promise<readonly ServerReport[] | undefined>;
  /** The list of tools of the running hub, as JSON; `undefined` if it does not give it. */
  readonly tools: () => Promise<string | undefined>;
  readonly close: () => void;
}

/** A hub that starts can take longer; the doctor does not wait for that. */
const ANSWER_WITHIN_MS = 2_500;

/** Finds the hub of this configuration, and connects to it if it runs. */
export async function openDoctorHub(configFile: string): Promise<DoctorHub> {
  const { TRUNKLINE_HUB } = process.env;
  const place = { configFile, dataFolder: userDataFolder(), hubsFolder: userHubsFolder() };
  const { folder, faults } = TRUNKLINE_HUB === 'off' ? { faults: [] } : inspectHubFolder(place);
  if (folder === undefined) return { ...NO_HUB, faults };
  const control = await reachSoon(folder);
  const description = typeof control === 'string' ? undefined : await describe(control);
  const facts: HubFacts = {
    folder,
    state: stateOf(control, description, folder),
    isAlive: (number) => isAlive(folder, number),
  };
  if (typeof control === 'string' || description === undefined) {
    const state = facts.state.kind === 'not running' ? 'absent' : 'silent';
    return { ...NO_HUB, faults, facts, state, logFile: hubLog(folder) };
  }
  const report = async () => ((await control.request('report')) as StatusReport).servers;
  return {
    faults,
    facts,
    logFile: description.logFile,
    state: 'running',
    servers: async () => (description.hasStarted ? await report() : undefined),
    tools: async () => await listTools(configFile),
    close: () => control.close(),
  };
}

const NO_HUB = {
  facts: undefined,
  logFile: undefined,
  state: 'absent',
  servers: async () => undefined,
  tools: async () => undefined,
  close: () => {},
} as const;

async function reachSoon(folder: string, number?: number): Promise<HubControl | NoControl> {
  const reaching = reachHub(folder, number);
  const control = await withinTime(reaching);
  if (control !== undefined) return control;
  void reaching.then((late) => typeof late === 'string' || late.close());
  return 'silent';
}

async function describe(control: HubControl): Promise<HubDescription | undefined> {
  // The hub may end meanwhile.
  return (await withinTime(control.request('describe').catch(() => undefined))) as HubDescription | undefined;
}

function stateOf(
  control: HubControl | NoControl,
  description: HubDescription | undefined,
  folder: string,
): HubFacts['state'] {
  if (description !== undefined) {
    const { pid, version, clients } = description;
    const known = clients.map(({ name, pid, revision = null, trunkline = null }) => ({
      name,
      pid,
      revision,
      trunkline,
    }));
    return { kind: 'running', pid, version, clients: known };
  }
  if (control === 'not running' || control === 'refused') return { kind: control };
  return { kind: 'silent', pid: notedPid(folder) };
}

async function isAlive(folder: string, number: number): Promise<boolean> {
  const control = await reachSoon(folder, number);
  if (typeof control !== 'string') control.close();
  return control !== 'not running';
}

async function listTools(configFile: string): Promise<string | undefined> {
  const opened = await openHubClient({ config: configFile, verbosity: 0, logFile: undefined });
  if (opened.kind !== 'opened') return undefined;
  try {
    return await listAllTools(opened.hub.client);
  } finally {
    opened.hub.close();
  }
}

/** The result, or `undefined` if it takes too long. */
async function withinTime<T>(result: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ANSWER_WITHIN_MS);
  });
  try {
    return await Promise.race([result, late]);
  } finally {
    clearTimeout(timer);
  }
}
