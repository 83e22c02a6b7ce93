import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfig } from '../../../app/read-config.js';
import { entriesIn } from '../../../config/edit/edit-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import { ConfigLocation, readConfigText, stateOf } from '../../../config/file/find-config.js';
import { errorMessage } from '../../../errors/error-text.js';
import { UsageError } from '../../../errors/usage-error.js';
import type { StatusReport } from '../../../gateway/status/status.js';
import type { HubControl, NoControl } from '../../../hub/attach/control-client.js';
import type { CallsEvent, HubDescription, OutputEvent, PageEvent } from '../../../hub/control.js';
import { hubFiles, latestHub } from '../../../hub/hub-folder.js';
import { isRecord } from '../../../json/json-value.js';
import type { Clock } from '../../../timing/clock.js';
import { VERSION } from '../../../version.js';
import type { ConfiguredServer, Frame, HubState, UsagePoint } from '../../../web/contract.js';
import type { Following, Topics } from '../../../web/page-source.js';
import { findHubSite, howToStart, isHubOn, notedPid, REFUSED, reachHub, silentText } from '../hub/hub-access.js';
import { needsOf } from './needs.js';

export interface FollowOptions {
  readonly settings: GlobalOptions;
  readonly isReadOnly: boolean;
  readonly clock: Clock;
  readonly take: (frame: Frame) => void;
}

/** Time between two looks for a hub, for its successor, and at the configuration file without a hub. */
const LOOK_EVERY_MS = 1_000;

type NoHub = Extract<HubState, { readonly kind: 'none' }>;

/** Follows the hub of the configuration: the one that runs now, its successors, and the next one after its end. */
export class HubFollower implements Following {
  readonly #options: FollowOptions;
  #topics: Topics = { calls: false, outputs: new Set() };
  #control: HubControl | undefined;
  /** Connections for calls (with the key '') and for the output of servers. Closing one ends its command in the hub. */
  readonly #streams = new Map<string, AbortController>();
  #state: { readonly hub: HubDescription; readonly report: StatusReport } | undefined;
  #usage: readonly UsagePoint[] = [];
  /** Sentence about the end of the last hub; empty before the first. */
  #ended = '';
  /** The latest state without a hub, as JSON. */
  #absent = '';
  #needs = '';
  #disabled: { readonly key: string; readonly servers: readonly string[] } | undefined;
  #described: { readonly key: string; readonly value: Pick<NoHub, 'servers' | 'fault'> } | undefined;
  #isClosed = false;
  #looks = 0;
  #cancelLook = () => {};

  constructor(options: FollowOptions) {
    this.#options = options;
    const { settings, isReadOnly, take } = options;
    take({ kind: 'hello', version: VERSION, configFile: configFileOf(settings), isReadOnly, home: homedir() });
    void this.#look();
  }

  want(topics: Topics): void {
    this.#topics = topics;
    this.#openStreams();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelLook();
    this.#control?.close();
    for (const stream of this.#streams.values()) stream.abort();
  }

  /** Connects to the latest hub if it is not the one that is followed, and looks again later. */
  async #look(): Promise<void> {
    this.#cancelLook();
    this.#looks += 1;
    const look = this.#looks;
    try {
      await this.#reach();
    } catch (error) {
      if (!(error instanceof UsageError) && !(error instanceof ConfigError)) throw error;
      const isMissing = error instanceof ConfigError;
      const remedy = isMissing ? '`trunkline init` takes over the servers of your MCP clients.' : `${error.hint}.`;
      this.#tellAbsent({ because: 'No hub runs.', remedy, servers: [], fault: error.message });
    }
    if (this.#isClosed || look !== this.#looks) return;
    this.#cancelLook = this.#options.clock.schedule(LOOK_EVERY_MS, () => void this.#look());
  }

  async #reach(): Promise<void> {
    const { folder, configFile } = findHubSite(this.#options.settings);
    const latest = latestHub(folder);
    if (this.#control?.number === latest) return;
    const control = await reachHub(folder, latest);
    if (typeof control !== 'string') this.#follow(control, folder, configFile);
    // While its successor starts, the hub before is still followed.
    else if (this.#control === undefined) await this.#describeAbsence(control, folder, configFile);
  }

  #follow(control: HubControl, folder: string, configFile: string): void {
    if (this.#isClosed) {
      control.close();
      return;
    }
    const before = this.#control;
    this.#control = control;
    before?.close();
    this.#absent = '';
    const { number, pid, version } = control;
    control
      .request('page', {}, (event) => this.#took(control, event as PageEvent))
      .catch((error: unknown) => {
        if (this.#control !== control || !errorMessage(error).includes('does not know the command')) return;
        const because = `The hub (pid ${pid}) has version ${version}, which does not tell its state to a page.`;
        const remedy = `\`trunkline hub restart\` starts a hub of version ${VERSION}.`;
        this.#tellAbsent({ because, remedy, servers: [], fault: null });
      });
    void control.closed.then(async () => {
      if (this.#control !== control || this.#isClosed) return;
      this.#control = undefined;
      this.#state = undefined;
      this.#closeStreams();
      const files = hubFiles(folder, number);
      // A later hub removes the folder of one that has ended.
      const isPlanned = existsSync(files.ended) || !existsSync(files.folder);
      this.#ended = isPlanned
        ? `The hub (pid ${pid}) has ended.`
        : `The hub (pid ${pid}) was killed or has crashed; \`trunkline logs\` shows its last messages.`;
      // Told even if the next hub runs already, because calls may have failed.
      await this.#describeAbsence('not running', folder, configFile);
      if (this.#control === undefined) await this.#look();
    });
    this.#closeStreams();
    this.#openStreams();
  }

  #took(control: HubControl, event: PageEvent): void {
    if (this.#control !== control || this.#isClosed) return;
    const at = Date.now();
    if (event.kind === 'usage') {
      this.#usage = event.servers;
      this.#options.take({ ...event, at });
      // The use of memory can come near to a limit.
      if (this.#state !== undefined && JSON.stringify(this.#needsNow(this.#state)) !== this.#needs)
        this.#tellRunning(this.#state);
      return;
    }
    const { hub, report } = event;
    if (report === null) this.#options.take({ kind: 'state', at, hub: { kind: 'waiting', hub }, needs: [] });
    else this.#tellRunning({ hub, report });
  }

  #needsNow(state: { readonly hub: HubDescription; readonly report: StatusReport }) {
    return needsOf({ ...state, usage: this.#usage });
  }

  #tellRunning(state: { readonly hub: HubDescription; readonly report: StatusReport }): void {
    this.#state = state;
    const needs = this.#needsNow(state);
    this.#needs = JSON.stringify(needs);
    const disabled = this.#disabledIn(state.hub.configFile);
    this.#options.take({ kind: 'state', at: Date.now(), hub: { kind: 'running', ...state, disabled }, needs });
  }

  /** A change of the file changes the state, too, so it is read when the state is told. */
  #disabledIn(configFile: string): readonly string[] {
    const key = `${configFile} ${stateOf(configFile)}`;
    const known = this.#disabled?.key === key ? this.#disabled : { key, servers: readDisabled(configFile) };
    this.#disabled = known;
    return known.servers;
  }

  async #describeAbsence(reason: NoControl, folder: string, configFile: string): Promise<void> {
    // Read again when the file has changed.
    const key = `${configFile} ${stateOf(configFile)}`;
    if (this.#described?.key !== key)
      this.#described = { key, value: await readDescription(this.#options.settings, configFile) };
    const configured = this.#described.value;
    // A hub may have been found meanwhile.
    if (this.#control !== undefined) return;
    const remedy = howToStart(process.env.TRUNKLINE_HUB !== 'off' && isHubOn(configFile));
    if (reason === 'silent') this.#tellAbsent({ ...configured, because: silentText(notedPid(folder)), remedy: '' });
    else if (reason === 'refused') this.#tellAbsent({ ...configured, because: REFUSED, remedy: '' });
    else this.#tellAbsent({ ...configured, because: ['No hub runs.', this.#ended].filter(Boolean).join(' '), remedy });
  }

  #tellAbsent(absence: Omit<NoHub, 'kind'>): void {
    const hub = { kind: 'none', ...absence } as const;
    const text = JSON.stringify(hub);
    if (this.#isClosed || text === this.#absent) return;
    this.#absent = text;
    this.#options.take({ kind: 'state', at: Date.now(), hub, needs: [] });
  }

  #closeStreams(): void {
    for (const stream of this.#streams.values()) stream.abort();
    this.#streams.clear();
  }

  /** Opens the streams that the pages want, and closes the others. */
  #openStreams(): void {
    const { calls, outputs } = this.#topics;
    const wanted = this.#control === undefined ? new Set() : new Set([...(calls ? [''] : []), ...outputs]);
    for (const [key, stream] of this.#streams) {
      if (wanted.has(key)) continue;
      stream.abort();
      this.#streams.delete(key);
    }
    if (calls && !this.#streams.has('') && wanted.has(''))
      this.#stream('', 'calls', (event) => this.#options.take({ kind: 'calls', ...(event as CallsEvent) }));
    for (const server of outputs) {
      if (this.#streams.has(server) || !wanted.has(server)) continue;
      this.#stream(server, 'output', (event) =>
        this.#options.take({ kind: 'output', server, ...(event as OutputEvent) }),
      );
    }
  }

  #stream(key: string, command: string, onEvent: (event: unknown) => void): void {
    const ending = new AbortController();
    this.#streams.set(key, ending);
    const { folder } = findHubSite(this.#options.settings);
    const params = key === '' ? {} : { server: key };
    void reachHub(folder, this.#control?.number).then((control) => {
      if (typeof control === 'string') return;
      if (ending.signal.aborted) control.close();
      ending.signal.addEventListener('abort', () => control.close());
      const take = (event: unknown) => {
        if (!ending.signal.aborted) onEvent(event);
      };
      // The hub may be an older one, or have no such server any more.
      control.request(command, params, take).catch(() => {});
    });
  }
}

function configFileOf({ config }: GlobalOptions): string {
  try {
    return new ConfigLocation({ config }).file;
  } catch (error) {
    return error instanceof ConfigError ? (error.file ?? '') : '';
  }
}

/** The disabled servers of the configuration file; none if it has mistakes. */
function readDisabled(file: string): readonly string[] {
  try {
    const entries = Object.entries(entriesIn(readConfigText(file)));
    return entries.filter(([server, entry]) => describeEntry(server, entry).isDisabled).map(([server]) => server);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [];
  }
}

/** The servers of the configuration file, and its fault. */
async function readDescription(settings: GlobalOptions, file: string): Promise<Pick<NoHub, 'servers' | 'fault'>> {
  try {
    const servers = Object.entries(entriesIn(readConfigText(file))).map(([server, entry]) =>
      describeEntry(server, entry),
    );
    const fault = await readConfig(settings).then(
      () => null,
      (error: unknown) => errorMessage(error),
    );
    return { servers, fault };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { servers: [], fault: error.report };
  }
}

/** Leaves out arguments, and all of a URL but its origin, because they can be secrets. */
function describeEntry(server: string, entry: unknown): ConfiguredServer {
  const { package: name, command, url, disabled } = isRecord(entry) ? entry : {};
  const address = typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : 'a URL';
  const program = [name, command].find((each) => typeof each === 'string');
  return { server, runs: program === undefined ? address : String(program), isDisabled: disabled === true };
}
