import type { HubDescription } from '../app/hub-answers.js';
import { openHubClient } from '../app/hub-client.js';
import { notedPid, reachHub } from '../app/running-hub.js';
import { userDataFolder } from '../app/user-files.js';
import type { HubFacts } from '../doctor/hub.js';
import type { ServerReport, StatusReport } from '../gateway/status/status-report.js';
import type { HubControl } from '../hub/attach/control-client.js';
import { hubLog } from '../hub/attach/start-hub.js';
import { inspectHubFolder } from '../hub/place.js';
import { listAllTools } from './tools.js';

/** The hub of a configuration, running or not. Asking for it starts nothing and creates nothing. */
export interface DoctorHub {
  /** Why no hub can run. */
  readonly faults: readonly string[];
  /** Absent if no hub has ever run. */
  readonly facts: HubFacts | undefined;
  readonly logFile: string | undefined;
  /** Whether clients can use it now. */
  readonly isRunning: boolean;
  /** What the running hub knows of its servers; `undefined` if none was started yet. */
  readonly servers: () => Promise<readonly ServerReport[] | undefined>;
  /** The list of tools of the running hub, as JSON. */
  readonly tools: () => Promise<string | undefined>;
  readonly close: () => void;
}

export async function openDoctorHub(configFile: string): Promise<DoctorHub> {
  const { TRUNKLINE_HUB, TRUNKLINE_HUB_DIR } = process.env;
  const place = { configFile, dataFolder: userDataFolder(), hubsFolder: TRUNKLINE_HUB_DIR };
  const { folder, faults } = TRUNKLINE_HUB === 'off' ? { faults: [] } : inspectHubFolder(place);
  if (folder === undefined) return { ...NO_HUB, faults };
  const control = await reachHub(folder);
  const facts: HubFacts = {
    folder,
    state: await stateOf(control, folder),
    isAlive: async (number) => {
      const other = await reachHub(folder, number);
      if (typeof other !== 'string') other.close();
      return other !== 'not running';
    },
  };
  if (typeof control === 'string') return { ...NO_HUB, faults, facts, logFile: hubLog(folder) };
  const description = (await control.request('describe')) as HubDescription;
  return {
    faults,
    facts,
    logFile: description.logFile,
    isRunning: true,
    servers: async () =>
      description.hasStarted ? ((await control.request('report')) as StatusReport).servers : undefined,
    tools: async () => {
      const opened = await openHubClient({ config: configFile, verbosity: 0, logFile: undefined });
      if (opened.kind !== 'opened') return undefined;
      try {
        return await listAllTools(opened.hub.client);
      } finally {
        opened.hub.close();
      }
    },
    close: () => control.close(),
  };
}

const NO_HUB = {
  facts: undefined,
  logFile: undefined,
  isRunning: false,
  servers: async () => undefined,
  tools: async () => undefined,
  close: () => {},
};

async function stateOf(control: Awaited<ReturnType<typeof reachHub>>, folder: string): Promise<HubFacts['state']> {
  if (control === 'silent') return { kind: 'silent', pid: notedPid(folder) };
  if (typeof control === 'string') return { kind: control };
  const { pid, version, clients } = await describe(control);
  return { kind: 'running', pid, version, clients: clients.length };
}

async function describe(control: HubControl): Promise<HubDescription> {
  return (await control.request('describe')) as HubDescription;
}
