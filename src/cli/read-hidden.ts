import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

/**
 * Asks for one line on a terminal that does not show what is typed. Resolves with `undefined` if the person presses Ctrl-C
 * or ends the input.
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
