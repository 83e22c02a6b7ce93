import { EXIT } from '../app/exit-codes.js';
import type { GlobalOptions } from '../app/global-options.js';
import type { HubDescription, StatusAnswer } from '../app/hub-answers.js';
import type { HubControl } from '../hub/attach/control-client.js';
import { printableLines } from '../json/printable.js';
import { withHub } from './hub-access.js';
import { print, tell } from './output.js';

export interface StatusOptions {
  readonly isJson: boolean;
  /** Shows the status again whenever it changes. */
  readonly isWatched: boolean;
}

/** `trunkline status`: the status of the running hub, as its clients see it. */
export async function status(options: GlobalOptions, { isJson, isWatched }: StatusOptions): Promise<number> {
  return await withHub(options, async ({ control, site }) => {
    const { hasStarted, pid } = (await control.request('describe')) as HubDescription;
    if (!hasStarted) {
      tell(`The hub of ${site.configFile} (pid ${pid}) waits for its first client, so no server runs yet.`);
      return EXIT.ok;
    }
    if (isWatched) return await watch(control, isJson);
    const { text, structure } = (await control.request('status')) as StatusAnswer;
    await print(isJson ? JSON.stringify(structure) : printableLines(text));
    return EXIT.ok;
  });
}

/** Until the hub ends: redraws a terminal each second, and writes each change elsewhere. */
async function watch(control: HubControl, isJson: boolean): Promise<number> {
  const isTerminal = process.stdout.isTTY === true && !isJson;
  process.stdout.once('error', () => process.exit(EXIT.ok));
  let shown: string | undefined;
  const show = ({ text, structure }: StatusAnswer) => {
    const now = withoutTimes(text);
    if (isTerminal) process.stdout.write(`${TO_TOP}${printableLines(text)}\n`);
    else if (now !== shown) process.stdout.write(`${isJson ? JSON.stringify(structure) : `${text}\n`}\n`);
    shown = now;
  };
  await control.request('status', { follow: true }, (event) => show(event as StatusAnswer)).catch(() => {});
  tell('The hub has ended. The next client that connects, or has something to send, starts another one.');
  return EXIT.noHub;
}

/** Moves to the first line of the screen and clears it. */
const TO_TOP = '\x1b[H\x1b[2J';

/** The text without the ages in it, which change each second. */
export function withoutTimes(text: string): string {
  return text.replaceAll(/\b\d+ (?:s|min|h)\b/g, '');
}
