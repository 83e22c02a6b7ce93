import { createReadStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { GlobalOptions } from '../../../app/global-options.js';
import { errorMessage } from '../../../host/errors/error-text.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import type { RecordCounts } from '../../../hub/server/hub-commands.js';
import { recordingFolder } from '../../../state/user-files.js';
import type { RecordingState } from '../../../web/server/contract.js';
import { PageRefusal } from '../../../web/server/page-source.js';
import { openGateway } from '../hub/hub-access.js';

const NAME = /^trunkline-\d{8}-\d{6}\.jsonl$/;

interface Recording {
  readonly control: HubControl;
  readonly path: string;
  /** Resolves when the hub has written the file, or cannot go on. */
  readonly ended: Promise<void>;
}

/** Recordings that the page starts. The hub writes them into a folder of this user, until they are stopped or this process ends. */
export class PageRecordings {
  readonly #settings: GlobalOptions;
  #running: Recording | undefined;
  /** The recording that runs, or that was cut off and not stopped yet; null if pages offer to start one. */
  #state: RecordingState | null = null;
  #take: (recording: RecordingState | null) => void = () => {};

  constructor(settings: GlobalOptions) {
    this.#settings = settings;
  }

  /** Tells the state of the recording now and when it changes, until the returned function is called. */
  follow(take: (recording: RecordingState | null) => void): () => void {
    this.#take = take;
    take(this.#state);
    return () => {
      this.#take = () => {};
    };
  }

  async start(): Promise<RecordingState> {
    if (this.#running !== undefined) throw new PageRefusal(409, 'A recording runs already.');
    const open = await openGateway(this.#settings);
    if ('because' in open) throw new PageRefusal(503, `Nothing can be recorded. ${open.because}`);
    const { control } = open;
    const since = Date.now();
    const [day, time] = new Date(since)
      .toISOString()
      .replace(/[-:]|\..*$/g, '')
      .split('T');
    const file = `trunkline-${day}-${time}.jsonl`;
    const path = join(recordingFolder(), file);
    await mkdir(recordingFolder(), { recursive: true, mode: 0o700 });
    const begun: RecordingState = { file, since, written: 0, dropped: 0, fault: null };
    return await new Promise((resolve, reject) => {
      const took = (counts: unknown) => {
        const { written, dropped, fault = null } = counts as RecordCounts;
        const state = { ...begun, written, dropped, fault };
        this.#tell(state);
        resolve(state);
      };
      const cutOff = (error: unknown) => {
        const fault = errorMessage(error);
        // A recording that has not begun leaves nothing to stop.
        if (this.#state?.file === file) this.#tell({ ...this.#state, fault });
        reject(new PageRefusal(400, fault));
      };
      const ended = control
        .request('record', { file: path }, took)
        .then(took, cutOff)
        .then(() => {
          control.close();
          this.#running = undefined;
        });
      this.#running = { control, path, ended };
    });
  }

  async stop(): Promise<RecordingState> {
    const before = this.#state;
    if (before === null) throw new PageRefusal(409, 'No recording runs.');
    const { control, path, ended } = this.#running ?? {};
    await control?.request('stopRecording', { file: path }).catch(() => {});
    await ended;
    // Another tab may have stopped it meanwhile.
    const last = this.#state ?? before;
    this.#tell(null);
    return last;
  }

  async open(file: string): Promise<Readable> {
    const path = join(recordingFolder(), file);
    const isThere = NAME.test(file) && (await stat(path).catch(() => undefined))?.isFile() === true;
    if (!isThere) throw new PageRefusal(404, 'There is no recording with this name.');
    return createReadStream(path);
  }

  #tell(state: RecordingState | null): void {
    this.#state = state;
    this.#take(state);
  }
}
