import { EXIT } from '../../../errors/usage-error.js';
import type { StatusReport } from '../../../gateway/status/status.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import type { HubDescription, StatusAnswer } from '../../../hub/control.js';
import { printableLines } from '../../../json/printable.js';
import { VERSION } from '../../../version.js';
import type { Invocation } from '../../command.js';
import { endWithReader, forStream, note, print, printJson, tell } from '../../output.js';
import { lookOf } from '../../terminal.js';
import { describeHub, describeHubs, type HubSite, hubText, processText, withHub } from './hub-access.js';

/** `trunkline status`: the status of the running hub, as its clients see it. */
export async function status({ settings, options, isJson }: Invocation<{ watch: true }>): Promise<number> {
  return await withHub(settings, async ({ control, site }) => {
    const { hasStarted, pid } = await describeHub(control);
    if (!hasStarted) {
      tell(waitingText(site, pid));
      return EXIT.ok;
    }
    if (options.watch) return await watch(control, isJson);
    const { text, structure } = (await control.request('status')) as StatusAnswer;
    await print(isJson ? JSON.stringify(structure) : printableLines(text));
    return EXIT.ok;
  });
}

/** `trunkline metrics`: the metrics of the running hub, as Prometheus reads them. */
export async function metrics({ settings }: Invocation): Promise<number> {
  return await withHub(settings, async ({ control, site }) => {
    const { hasStarted, pid } = await describeHub(control);
    if (hasStarted) await print(((await control.request('metrics')) as string).trimEnd());
    else tell(waitingText(site, pid));
    return EXIT.ok;
  });
}

function waitingText({ configFile }: HubSite, pid: number): string {
  return `The hub of ${configFile} (pid ${pid}) waits for its first client, so no server runs yet.`;
}

/** Shows a screen on a terminal; elsewhere, prints the status at each change. Lasts until the hub ends or the user stops it. */
async function watch(control: HubControl, isJson: boolean): Promise<number> {
  const { stdin, stdout } = process;
  const isScreen = !isJson && stdout.isTTY === true && stdin.isTTY === true && process.env.TERM !== 'dumb';
  const code = await (isScreen ? watchOnScreen(control) : writeChanges(control, isJson));
  if (code === EXIT.noHub)
    tell('The hub has ended. The next client that connects, or has something to send, starts another one.');
  return code;
}

async function watchOnScreen(control: HubControl): Promise<number> {
  const { watchInTerminal } = await import('./watch.js');
  return await watchInTerminal({
    input: process.stdin,
    output: process.stdout,
    readFacts: async () => {
      const answers = await Promise.all([control.request('describe', { withUsage: true }), control.request('report')]);
      const [hub, report] = answers as [HubDescription, StatusReport];
      return { hub, report, at: performance.now() };
    },
    readLog: async (server) => {
      const { servers } = (await control.request('report', { server })) as StatusReport;
      return servers.flatMap(({ cause, log }) => (log.length > 0 ? log : cause));
    },
    restart: async (server) => {
      await control.request('restart', { server });
    },
    hubEnded: control.closed,
  });
}

async function writeChanges(control: HubControl, isJson: boolean): Promise<number> {
  endWithReader();
  let shown: string | undefined;
  const show = ({ text, structure }: StatusAnswer) => {
    const now = withoutTimes(text);
    const line = isJson ? JSON.stringify(structure) : forStream(`${text}\n`, process.stdout);
    if (now !== shown) process.stdout.write(`${line}\n`);
    shown = now;
  };
  await control.request('status', { follow: true }, (event) => show(event as StatusAnswer)).catch(() => {});
  return EXIT.noHub;
}

/** Removes ages from the text, because they change each second. */
export function withoutTimes(text: string): string {
  return text.replaceAll(/\b\d+ (?:s|min|h)\b/g, '');
}

/** `trunkline hub status`: the hub, and the earlier ones that still drain. `trunkline ps`: with clients and processes. */
export async function printHubs(withUsage: boolean, { settings, isJson }: Invocation): Promise<number> {
  return await withHub(settings, async (reached) => {
    const facts = await describeHubs(reached, withUsage);
    if (isJson) await printJson(facts);
    else await print(withUsage ? processText(facts, lookOf(process.stdout)) : hubText(facts, VERSION));
    return EXIT.ok;
  });
}

/** `trunkline restart SERVER`: restarts a server of the running hub. */
export async function restartServer({ settings, words: [server = ''], isJson }: Invocation): Promise<number> {
  return await withHub(settings, async ({ control }) => {
    await control.request('restart', { server });
    const text = `Server "${server}" is being restarted. Its calls in flight fail.`;
    if (isJson) await printJson({ server, restarting: true });
    else note(`${text} \`trunkline status\` shows when it is ready.`);
    return EXIT.ok;
  });
}
