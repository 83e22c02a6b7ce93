import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { printable } from '../wire/json/printable.js';

/** Asks the user on a terminal. The answer is `undefined` if the user gives up with Ctrl-C or Escape. */
export interface Questions {
  /** `byDefault` is the answer that Enter alone gives; `signal` ends the question without an answer. */
  confirm(question: string, options: { byDefault: boolean; signal?: AbortSignal }): Promise<boolean | undefined>;
  choose<T>(question: string, choices: readonly Choice<T>[]): Promise<readonly T[] | undefined>;
}

interface Choice<T> {
  readonly value: T;
  readonly label: string;
}

const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

/** Opens stdin and stderr for questions, because stdout is for results. `undefined` if one of the two is no terminal. */
export async function openQuestions(
  streams: { readonly input: ReadStream; readonly output: WriteStream } = {
    input: process.stdin,
    output: process.stderr,
  },
): Promise<Questions | undefined> {
  const { input, output } = streams;
  if (!input.isTTY || !output.isTTY) return undefined;
  // A terminal without a size, as some programs open one, has 0 columns, so each letter would stand on a line of its own.
  output.columns ||= DEFAULT_COLUMNS;
  output.rows ||= DEFAULT_ROWS;
  const { confirm, isCancel, multiselect } = await import('@clack/prompts');
  return {
    confirm: async (question, { byDefault, signal }) => {
      const message = printable(question);
      const answer = await confirm({ ...streams, message, initialValue: byDefault, ...(signal && { signal }) });
      return isCancel(answer) ? undefined : answer;
    },
    choose: async <T>(question: string, choices: readonly Choice<T>[]) => {
      const answer = await multiselect<Choice<T>>({
        ...streams,
        message: printable(question),
        options: choices.map((value) => ({ value, label: printable(value.label) })),
        initialValues: [...choices],
      });
      return isCancel(answer) ? undefined : answer.map(({ value }) => value);
    },
  };
}

/**
 * Asks for one line on a terminal, without showing the typed text. Resolves with `undefined` if the user presses Ctrl-C or ends the input.
 */
export async function readHidden(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  question: string,
): Promise<string | undefined> {
  // Readline would write each key that is typed.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nowhere, terminal: true, historySize: 0 });
  output.write(question);
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve);
      lines.once('SIGINT', () => resolve(undefined));
      lines.once('close', () => resolve(undefined));
    });
  } finally {
    lines.close();
    output.write('\n');
  }
}
