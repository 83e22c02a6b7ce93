import { createReadStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { GlobalOptions } from '../../../app/global-options.js';
import { errorMessage } from '../../../errors/error-text.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import type { RecordCounts } from '../../../hub/server/hub-commands.js';
import { recordingFolder } from '../../../state/user-files.js';
import type { RecordingState } from '../../../web/contract.js';
import { PageRefusal } from '../../../web/page-source.js';
import { findHubSite, reachHub } from '../hub/hub-access.js';

/** Names of the recordings that a page can start and download. */
const NAME = /^trunkline-\d{8}-\d{6}\.jsonl$/;

interface Recording {
  readonly control: HubControl;
  readonly path: string;
  /** Resolves when the hub has written the file. */
  readonly ended: Promise<void>;
}

/** Recordings that the page starts. The hub writes them into a folder of this user, until they are stopped or this process ends. */
export class PageRecordings {
  readonly #settings: GlobalOptions;
  #running: Recording | undefined;
  /** The running recording, or the last one. */
  #state: RecordingState | null = null;
  /** The recording that pages show; null if they offer to start one. */
  #shown: RecordingState | null = null;
  #take: (recording: RecordingState | null) => void = () => {};

  constructor(settings: GlobalOptions) {
    this.#settings = settings;
  }

  /** Tells the state of the recording now and when it changes, until the returned function is called. */
  follow(take: (recording: RecordingState | null) => void): () => void {
    this.#take = take;
    take(this.#shown);
    return () => {
      this.#take = () => {};
    };
  }

  async start(): Promise<RecordingState> {
    if (this.#running !== undefined) throw new PageRefusal(409, 'A recording runs already.');
    const { folder } = findHubSite(this.#settings);
    const control = await reachHub(folder);
    if (typeof control === 'string') throw new PageRefusal(503, 'No hub runs, so nothing can be recorded.');
    const since = Date.now();
    const file = `trunkline-${new Date(since)
      .toISOString()
      .replace(/[-:]|\..*$/g, '')
      .replace('T', '-')}.jsonl`;
    const path = join(recordingFolder(), file);
    await mkdir(recordingFolder(), { recursive: true, mode: 0o700 });
    const state = { file, since, written: 0, dropped: 0, fault: null };
    return await new Promise((resolve, reject) => {
      const took = (counts: unknown) => {
        const { written, dropped, fault = null } = counts as RecordCounts;
        this.#tell({ ...state, written, dropped, fault });
        resolve(this.#state ?? state);
      };
      const ended = control.request('record', { file: path }, took).then(took, (error: unknown) => {
        const fault = errorMessage(error);
        if (this.#state?.file === file) this.#tell({ ...this.#state, fault });
        reject(new PageRefusal(400, fault));
      });
      this.#running = { control, path, ended };
      void ended.then(() => {
        control.close();
        this.#running = undefined;
        // A recording that was cut off stays on the page until it is stopped there.
        if (this.#state?.fault == null) this.#show(null);
      });
    });
  }

  async stop(): Promise<RecordingState> {
    const running = this.#running;
    if (running === undefined && this.#state === null) throw new PageRefusal(409, 'No recording runs.');
    await running?.control.request('stopRecording', { file: running.path }).catch(() => {});
    await running?.ended;
    this.#show(null);
    return this.#state as RecordingState;
  }

  /** Opens a recording of this folder. */
  async open(file: string): Promise<Readable> {
    const path = join(recordingFolder(), file);
    const isThere = NAME.test(file) && (await stat(path).catch(() => undefined))?.isFile() === true;
    if (!isThere) throw new PageRefusal(404, 'There is no recording with this name.');
    return createReadStream(path);
  }

  #tell(state: RecordingState): void {
    this.#state = state;
    this.#show(state);
  }

  #show(recording: RecordingState | null): void {
    this.#shown = recording;
    this.#take(recording);
  }
}
