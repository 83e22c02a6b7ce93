import { existsSync } from 'node:fs';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { entriesIn } from '../../../config/edit/edit-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { readConfigText, stateOf } from '../../../config/file/find-config.js';
import { errorMessage } from '../../../errors/error-text.js';
import { UsageError } from '../../../errors/usage-error.js';
import type { HubControl, NoControl } from '../../../hub/attach/control-client.js';
import type { PageEvent } from '../../../hub/control.js';
import { hubFiles, latestHub } from '../../../hub/hub-folder.js';
import { isRecord } from '../../../json/json-value.js';
import { systemClock } from '../../../observe/system-clock.js';
import { VERSION } from '../../../version.js';
import type { ConfiguredServer, Frame, HubState } from '../../../web/contract.js';
import {
  findHubSite,
  type HubSite,
  howToStart,
  isHubOn,
  notedPid,
  REFUSED,
  reachHub,
  silentText,
} from '../hub/hub-access.js';
import { needsOf } from './needs.js';

/** Time between two looks for a hub, for its successor, and at the configuration file without a hub. */
const LOOK_EVERY_MS = 1_000;

type NoHub = Extract<HubState, { readonly kind: 'none' }>;

/** Follows the hub of the configuration: the one that runs now, its successors, and the next one after its end. */
export class HubFollower {
  readonly #settings: GlobalOptions;
  readonly #isReadOnly: boolean;
  readonly #take: (frame: Frame) => void;
  /** The file that is shown; null if there is none. */
  #configFile: string | null | undefined;
  #control: HubControl | undefined;
  /** Sentence about the end of the last hub; empty before the first. */
  #ended = '';
  /** The latest state without a hub, as JSON. */
  #absent = '';
  /** Content of the configuration file in one state of it. The fault is set when it is read. */
  #configured: {
    readonly state: string;
    readonly servers: readonly ConfiguredServer[];
    fault?: Promise<string | null>;
  } = {
    state: '',
    servers: [],
  };
  #isClosed = false;
  #wake = () => {};

  constructor(settings: GlobalOptions, isReadOnly: boolean, take: (frame: Frame) => void) {
    this.#settings = settings;
    this.#isReadOnly = isReadOnly;
    this.#take = take;
    void this.#run();
  }

  close(): void {
    this.#isClosed = true;
    this.#control?.close();
    this.#wake();
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#look();
      } catch (error) {
        if (!(error instanceof UsageError) && !(error instanceof ConfigError)) throw error;
        const isMissing = error instanceof ConfigError;
        this.#show((isMissing ? error.file : undefined) ?? this.#configFile ?? null);
        const remedy = isMissing ? '`trunkline init` takes over the servers of your MCP clients.' : `${error.hint}.`;
        this.#tellAbsent({ because: 'No hub runs.', remedy, servers: [], fault: error.message });
      }
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        const cancel = systemClock.schedule(LOOK_EVERY_MS, resolve);
        this.#wake = () => {
          cancel();
          resolve();
        };
      });
    }
  }

  /** Begins anew if this is another configuration, such as a file in the current folder that was not there before. */
  #show(configFile: string | null): void {
    if (this.#isClosed || this.#configFile === configFile) return;
    this.#configFile = configFile;
    const before = this.#control;
    this.#control = undefined;
    before?.close();
    this.#ended = '';
    this.#absent = '';
    this.#take({ kind: 'hello', isReadOnly: this.#isReadOnly, configFile });
  }

  /** Connects to the latest hub if it is not the one that is followed. */
  async #look(): Promise<void> {
    const site = findHubSite(this.#settings);
    this.#show(site.configFile);
    const latest = latestHub(site.folder);
    if (this.#control?.number === latest) return;
    const control = await reachHub(site.folder, latest);
    if (typeof control !== 'string') this.#follow(control, site);
    // While its successor starts, the hub before is still followed.
    else if (this.#control === undefined) await this.#describeAbsence(control, site);
  }

  #follow(control: HubControl, site: HubSite): void {
    if (this.#isClosed) {
      control.close();
      return;
    }
    const before = this.#control;
    this.#control = control;
    before?.close();
    this.#absent = '';
    control
      .request('page', {}, (event) => this.#took(control, event as PageEvent))
      .catch((error: unknown) => {
        if (this.#control !== control || !errorMessage(error).includes('does not know the command')) return;
        const because = `The hub (pid ${control.pid}) has version ${control.version}, which does not tell its state to a page.`;
        const remedy = `\`trunkline hub restart\` starts a hub of version ${VERSION}.`;
        this.#tellAbsent({ because, remedy, servers: [], fault: null });
      });
    void control.closed.then(() => this.#lost(control, site));
  }

  async #lost(control: HubControl, site: HubSite): Promise<void> {
    if (this.#control !== control || this.#isClosed) return;
    this.#control = undefined;
    const { ended, folder } = hubFiles(site.folder, control.number);
    // A later hub removes the folder of one that has ended.
    const isPlanned = existsSync(ended) || !existsSync(folder);
    this.#ended = isPlanned
      ? `The hub (pid ${control.pid}) has ended.`
      : `The hub (pid ${control.pid}) was killed or has crashed; \`trunkline logs\` shows its last messages.`;
    // Told even if the next hub runs already, because calls may have failed.
    await this.#describeAbsence('not running', site);
    this.#wake();
  }

  #took(control: HubControl, event: PageEvent): void {
    if (this.#control !== control || this.#isClosed) return;
    if (event.kind === 'calls' || event.kind === 'history') {
      this.#take(event);
      return;
    }
    // A later hub may have events that this command does not know.
    if (event.kind !== 'state') return;
    const { hub, report } = event;
    const at = Date.now();
    if (report === null) {
      this.#take({ kind: 'state', at, hub: { kind: 'waiting', hub }, needs: [] });
      return;
    }
    const disabled = this.#configurationIn(hub.configFile).servers.flatMap(({ server, isDisabled }) =>
      isDisabled ? [server] : [],
    );
    this.#take({ kind: 'state', at, hub: { kind: 'running', hub, report, disabled }, needs: needsOf(hub, report) });
  }

  /** The file is read again when it has changed. */
  #configurationIn(file: string) {
    const state = `${file} ${stateOf(file)}`;
    if (this.#configured.state !== state) this.#configured = { state, servers: serversIn(file) };
    return this.#configured;
  }

  async #describeAbsence(reason: NoControl, { folder, configFile }: HubSite): Promise<void> {
    const configured = this.#configurationIn(configFile);
    configured.fault ??= readConfig(this.#settings).then(() => null, errorMessage);
    const { servers } = configured;
    const fault = await configured.fault;
    // A hub may have been found meanwhile.
    if (this.#control !== undefined) return;
    const remedy = howToStart(process.env.TRUNKLINE_HUB !== 'off' && isHubOn(configFile));
    if (reason === 'silent') this.#tellAbsent({ servers, fault, because: silentText(notedPid(folder)), remedy: '' });
    else if (reason === 'refused') this.#tellAbsent({ servers, fault, because: REFUSED, remedy: '' });
    else this.#tellAbsent({ servers, fault, because: ['No hub runs.', this.#ended].filter(Boolean).join(' '), remedy });
  }

  #tellAbsent(absence: Omit<NoHub, 'kind'>): void {
    const hub = { kind: 'none', ...absence } as const;
    const text = JSON.stringify(hub);
    if (this.#isClosed || text === this.#absent) return;
    this.#absent = text;
    this.#take({ kind: 'state', at: Date.now(), hub, needs: [] });
  }
}

/** The servers of the configuration file; none if it cannot be read. Leaves out arguments, and all of a URL but its origin, because they can be secrets. */
function serversIn(file: string): ConfiguredServer[] {
  try {
    return Object.entries(entriesIn(readConfigText(file))).map(([server, entry]) => {
      const { package: name, command, url, disabled } = isRecord(entry) ? entry : {};
      const address = typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : 'a URL';
      const program = [name, command].find((each) => typeof each === 'string');
      return { server, runs: String(program ?? address), isDisabled: disabled === true };
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [];
  }
}
