import { existsSync } from 'node:fs';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { errorMessage } from '../../../host/errors/error-text.js';
import { UsageError } from '../../../host/errors/usage-error.js';
import { fileState } from '../../../host/files/whole-file.js';
import { systemClock } from '../../../host/observe/system-clock.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import type { PageEvent } from '../../../hub/control.js';
import { hubFiles } from '../../../hub/hub-folder.js';
import { VERSION } from '../../../version.js';
import type { ConfiguredServer, Frame, HubState } from '../../../web/server/contract.js';
import { capitalized } from '../../../wire/json/printable.js';
import { configuredServers } from '../config/list.js';
import { connectTo, findGateway, howToStart, isHubOn } from '../hub/hub-access.js';
import { configurationOf, isEarlierHub, nameOf, type RunningGateway } from '../hub/running.js';
import { needsOfHub } from './page-needs.js';

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
  #followed: RunningGateway | undefined;
  /** Sentence about the end of the last hub; empty before the first. */
  #ended = '';
  /** The latest state without a hub, as JSON. */
  #absent = '';
  /** Content of the configuration file in one state of it. `fault` is set when it is first needed. */
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
    this.#followed = undefined;
    before?.close();
    this.#ended = '';
    this.#absent = '';
    this.#take({ kind: 'hello', isReadOnly: this.#isReadOnly, configFile });
  }

  /** Connects to the gateway of the configuration, and to a later hub than the one that is followed. */
  async #look(): Promise<void> {
    const { gateway } = this.#settings;
    const isSame = gateway !== undefined || (configurationOf(this.#settings).file ?? null) === this.#configFile;
    if (isSame && this.#followed !== undefined && !isEarlierHub(this.#followed)) return;
    const { choice, configuration } = await findGateway(this.#settings);
    const { chosen } = choice;
    if (chosen === undefined && configuration.fault !== undefined) throw configuration.fault;
    this.#show((gateway === undefined ? configuration.file : undefined) ?? chosen?.configFile ?? null);
    const open = chosen && (await connectTo(chosen));
    if (open !== undefined && !('because' in open)) this.#follow(open.control, open.gateway);
    // The earlier hub is still followed while its successor starts.
    else if (this.#control === undefined) {
      const because = open === undefined || open.kind === 'not running' ? undefined : open.because;
      await this.#describeAbsence(chosen?.configFile ?? configuration.file ?? '', because);
    }
  }

  #follow(control: HubControl, gateway: RunningGateway): void {
    if (this.#isClosed || this.#followed?.name === gateway.name) {
      control.close();
      return;
    }
    this.#followed = gateway;
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
    void control.closed.then(() => this.#lost(control, gateway));
  }

  async #lost(control: HubControl, gateway: RunningGateway): Promise<void> {
    if (this.#control !== control || this.#isClosed) return;
    this.#control = undefined;
    this.#followed = undefined;
    const { ended, folder } = hubFiles(gateway.folder, gateway.name);
    // A later hub removes the folder of one that has ended, and another gateway removes its own.
    const isPlanned = existsSync(ended) || !existsSync(folder);
    const name = capitalized(nameOf(gateway));
    this.#ended = isPlanned
      ? `${name} has ended.`
      : `${name} was killed or has crashed${gateway.kind === 'hub' ? '; `trunkline logs` shows its last messages' : ''}.`;
    // Tells the page even if the next hub runs already, because calls may have failed.
    await this.#describeAbsence(gateway.configFile ?? '');
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
    this.#take({ kind: 'state', at, hub: { kind: 'running', hub, report, disabled }, needs: needsOfHub(hub, report) });
  }

  /** Returns the content of the configuration file. Reads the file again when it has changed. */
  #configurationIn(file: string) {
    const state = `${file} ${fileState(file)}`;
    if (this.#configured.state !== state) this.#configured = { state, servers: configuredServers(file) };
    return this.#configured;
  }

  /** Tells the page that there is no gateway. `unreached` is the reason why a gateway that runs cannot be reached. */
  async #describeAbsence(configFile: string, unreached?: string): Promise<void> {
    const configured = this.#configurationIn(configFile);
    configured.fault ??= readConfig(this.#settings).then(() => null, errorMessage);
    const { servers } = configured;
    const fault = await configured.fault;
    // A hub may have been found meanwhile.
    if (this.#control !== undefined) return;
    const remedy = howToStart(process.env.TRUNKLINE_HUB !== 'off' && isHubOn(configFile));
    const because = ['No hub runs.', this.#ended].filter(Boolean).join(' ');
    this.#tellAbsent({ servers, fault, because: unreached ?? because, remedy: unreached === undefined ? remedy : '' });
  }

  #tellAbsent(absence: Omit<NoHub, 'kind'>): void {
    const hub = { kind: 'none', ...absence } as const;
    const text = JSON.stringify(hub);
    if (this.#isClosed || text === this.#absent) return;
    this.#absent = text;
    this.#take({ kind: 'state', at: Date.now(), hub, needs: [] });
  }
}
