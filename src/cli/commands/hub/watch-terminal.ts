import { emitKeypressEvents } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import { errorMessage } from '../../../errors/error-text.js';
import { EXIT } from '../../../errors/usage-error.js';
import { lookOf } from '../../terminal.js';
import { type WatchFacts, type WatchState, withFacts, withKey } from './watch-state.js';
import { view } from './watch-view.js';

export interface WatchTerminalOptions {
  readonly input: Pick<ReadStream, 'setRawMode' | 'on' | 'off' | 'resume' | 'pause'>;
  readonly output: Pick<WriteStream, 'write' | 'on' | 'off' | 'columns' | 'rows' | 'isTTY'>;
  readonly readFacts: () => Promise<WatchFacts>;
  readonly readLog: (server: string) => Promise<readonly string[]>;
  readonly restart: (server: string) => Promise<void>;
  /** Resolves when the hub has ended. */
  readonly hubEnded: Promise<void>;
}

/** Time between two looks at the hub. */
const LOOK_EVERY_MS = 1_000;

/** The other screen of the terminal, without a cursor: what was there before comes back at the end. */
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
/** A terminal that knows these shows all lines at once. */
const [BEGIN, END] = ['\x1b[?2026h\x1b[H', '\x1b[J\x1b[?2026l'];
const CTRL_C_CODE = 130;

/** Shows the state of the hub until `q`, Ctrl-C or the end of the hub. Returns the exit code; restores the terminal. */
export async function watchInTerminal(options: WatchTerminalOptions): Promise<number> {
  const { input, output } = options;
  const screen = new WatchScreen(options);
  const restore = () => {
    output.write(LEAVE);
    input.setRawMode(false);
  };
  emitKeypressEvents(input as ReadStream);
  output.write(ENTER);
  input.setRawMode(true);
  // An internal error or a signal ends the process without the code below.
  process.once('exit', restore);
  for (const signal of SIGNALS) process.once(signal, screen.stop);
  input.on('keypress', screen.pressed);
  output.on('resize', screen.draw);
  input.resume();
  void options.hubEnded.then(() => screen.end(EXIT.noHub));
  try {
    return await screen.ended;
  } finally {
    screen.end(EXIT.ok);
    input.off('keypress', screen.pressed);
    output.off('resize', screen.draw);
    for (const signal of SIGNALS) process.off(signal, screen.stop);
    process.off('exit', restore);
    input.pause();
    restore();
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The state on the screen: looks at the hub each second, and does what keys ask for. */
class WatchScreen {
  readonly ended: Promise<number>;
  readonly #options: WatchTerminalOptions;
  #state: WatchState | undefined;
  #shown = '';
  #timer: NodeJS.Timeout | undefined;
  #resolve: (code: number) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #isOver = false;

  constructor(options: WatchTerminalOptions) {
    this.#options = options;
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#look();
  }

  end(code: number): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#resolve(code);
  }

  readonly stop = (): void => this.end(CTRL_C_CODE);

  readonly pressed = (_text: string | undefined, key: { readonly name?: string; readonly ctrl?: boolean }): void => {
    const isCtrlC = key.ctrl === true && key.name === 'c';
    if (isCtrlC) this.stop();
    if (this.#state === undefined && key.name === 'q') this.end(EXIT.ok);
    if (this.#state === undefined || isCtrlC) return;
    const { state, effect } = withKey(this.#state, key.name ?? '');
    this.#state = state;
    this.draw();
    if (effect?.kind === 'quit') this.end(EXIT.ok);
    if (effect?.kind === 'restart') void this.#restart(effect.server);
    // The log of another server comes at once.
    if (state.log?.lines.length === 0) void this.#readLog().catch(this.#failed);
  };

  readonly draw = (): void => {
    const { output } = this.#options;
    if (this.#state === undefined || this.#isOver) return;
    const lines = view(this.#state, output.columns || 80, output.rows || 24, lookOf(output).isColored);
    const text = lines.map((line) => `${line}\x1b[K`).join('\r\n');
    if (text === this.#shown) return;
    this.#shown = text;
    output.write(BEGIN + text + END);
  };

  #look(): void {
    const { readFacts } = this.#options;
    readFacts()
      .then(async (facts) => {
        this.#state = withFacts(this.#state, facts);
        await this.#readLog();
        if (!this.#isOver) this.#timer = setTimeout(() => this.#look(), LOOK_EVERY_MS);
      })
      .catch(this.#failed);
  }

  async #readLog(): Promise<void> {
    const server = this.#state?.log?.server;
    if (server !== undefined) {
      const lines = await this.#options.readLog(server);
      // Another server may have been chosen meanwhile.
      if (this.#state?.log?.server === server) this.#state = { ...this.#state, log: { server, lines } };
    }
    this.draw();
  }

  async #restart(server: string): Promise<void> {
    const note = await this.#options.restart(server).then(
      () => `${server} is being restarted. Its calls in flight fail.`,
      (error: unknown) => errorMessage(error),
    );
    if (this.#state !== undefined) this.#state = { ...this.#state, note };
    this.draw();
  }

  /** The end of the hub fails what was asked, too, and is reported by itself. */
  readonly #failed = (error: unknown): void => {
    void this.#options.hubEnded.then(() => this.end(EXIT.noHub));
    const timer = setTimeout(() => this.#reject(error), LOOK_EVERY_MS);
    timer.unref();
  };
}
