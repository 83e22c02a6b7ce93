import { existsSync } from 'node:fs';
import type { GlobalOptions } from '../../../app/global-options.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import type { HubControl } from '../../../hub/attach/control-client.js';
import type { HubDescription, StatusAnswer } from '../../../hub/control.js';
import type { StatusReport } from '../../../status/status.js';
import { duration } from '../../../status/status-text.js';
import { VERSION } from '../../../version.js';
import { capitalized, printableLines } from '../../../wire/json/printable.js';
import type { Invocation } from '../../command.js';
import { answer, endWithReader, forStream, note, print, printJson, tell } from '../../output.js';
import { type Cell, type Look, lookOf, table } from '../../terminal.js';
import { describeHubs, hubText, type OpenGateway, processText, UNKNOWN, withGateway } from './hub-access.js';
import {
  configurationText,
  findOwnProcesses,
  goneText,
  isEarlierHub,
  nameOf,
  type OwnProcesses,
  type RunningGateway,
} from './running.js';

/** `trunkline status`: the status of the running gateway, as its clients see it; or everything about one server. */
export async function status({ settings, words, options, isJson }: Invocation<{ watch: true }>): Promise<number> {
  const [server] = words;
  if (server !== undefined && options.watch)
    throw new UsageError('`--watch` shows all servers', 'leave out the server, or `--watch`');
  return await withGateway(settings, async ({ control, gateway, hasStarted }) => {
    if (!hasStarted) {
      tell(waitingText(gateway));
      return EXIT.ok;
    }
    if (options.watch) return await watch(control, gateway, isJson);
    const { text, structure } = (await control.request('status', { server })) as StatusAnswer;
    return await answer(isJson, structure, () => printableLines(text));
  });
}

/** `trunkline metrics`: the metrics of the running gateway, as Prometheus reads them. */
export async function metrics({ settings }: Invocation): Promise<number> {
  return await withGateway(settings, async ({ control, gateway, hasStarted }) => {
    if (hasStarted) await print(((await control.request('metrics')) as string).trimEnd());
    else tell(waitingText(gateway));
    return EXIT.ok;
  });
}

function waitingText(gateway: RunningGateway): string {
  const name = capitalized(nameOf(gateway));
  if (gateway.kind !== 'hub') return `${name} is starting its servers; run the command again.`;
  return `${name} of ${gateway.configFile} waits for its first client, so no server runs yet.`;
}

/** Shows a screen on a terminal; elsewhere, prints the status at each change. Lasts until the hub ends or the user stops it. */
async function watch(control: HubControl, { kind }: RunningGateway, isJson: boolean): Promise<number> {
  const { stdin, stdout } = process;
  const isScreen = !isJson && stdout.isTTY === true && stdin.isTTY === true && process.env.TERM !== 'dumb';
  const code = await (isScreen ? watchOnScreen(control) : writeChanges(control, isJson));
  const another = 'The next client that connects, or has something to send, starts another one.';
  if (code === EXIT.noHub) tell(kind === 'hub' ? `The hub has ended. ${another}` : 'The gateway has ended.');
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

/** `trunkline ps`: a gateway with its clients and the processes of its servers; with `--all` every process of this user. */
export async function ps({ settings, options, isJson }: Invocation<{ all: true }>): Promise<number> {
  if (options.all) return await listAll(isJson);
  return await withGateway(settings, async (open) => {
    const facts = await describeHubs(open, true);
    return await answer(isJson, facts, () => processText(facts, lookOf(process.stdout)));
  });
}

async function listAll(isJson: boolean): Promise<number> {
  const found = await findOwnProcesses();
  return await answer(isJson, toJson(found), () => allText(found, lookOf(process.stdout)));
}

/** Returns `running`, `draining`, or the reason why a gateway does not describe itself. */
function stateOf(gateway: RunningGateway): string {
  const { answer } = gateway;
  if (typeof answer === 'string') return answer;
  return answer.isDraining || isEarlierHub(gateway) ? 'draining' : 'running';
}

function toJson({ gateways, attached }: OwnProcesses) {
  const existing = (file: string | null) => (file === null ? null : existsSync(file));
  return {
    gateways: gateways.map((gateway) => {
      const { kind, pid = null, url = null, configFile = null } = gateway;
      const about = { kind, pid, url, configFile, configExists: existing(configFile), state: stateOf(gateway) };
      const {
        version = null,
        uptimeSeconds = null,
        clients,
      } = typeof gateway.answer === 'string' ? {} : gateway.answer;
      return { ...about, version, uptimeSeconds, clients: clients?.length ?? null };
    }),
    attached: attached.map((each) => ({ ...each, configExists: existing(each.configFile) })),
  };
}

const KINDS: Readonly<Record<RunningGateway['kind'], string>> = { hub: 'hub', http: 'HTTP', stdio: 'one client' };

export function allText(found: OwnProcesses, look: Look): string {
  const { gateways, attached } = found;
  if (gateways.length + attached.length === 0)
    return 'No process of Trunkline serves. The next client that connects starts a hub; `trunkline serve --http PORT` serves HTTP.';
  const gatewayRows = gateways.map((gateway): Cell[] => {
    const { kind, pid, url, answer } = gateway;
    const facts =
      typeof answer === 'string'
        ? [UNKNOWN, UNKNOWN, 'does not answer']
        : [duration(answer.uptimeSeconds), String(answer.clients.length), stateOf(gateway)];
    return [KINDS[kind], String(pid ?? UNKNOWN), ...facts, url ?? UNKNOWN, configurationText(gateway)];
  });
  const attachedRows = attached.map(({ pid, client, hub, configFile }): Cell[] => {
    const configuration = configFile === null ? UNKNOWN : configurationText({ configFile });
    return [String(pid), client ?? UNKNOWN, String(hub ?? 'none found'), configuration];
  });
  const head = ['GATEWAY', 'PID', 'UP', 'CLIENTS', 'STATE', 'URL', 'CONFIGURATION'];
  const sections = [
    gateways.length > 0 ? table([head, ...gatewayRows], look) : '',
    attached.length > 0 ? table([['ATTACH PROCESS', 'CLIENT', 'HUB', 'CONFIGURATION'], ...attachedRows], look) : '',
    ...gateways.flatMap((gateway) => goneText(gateway) ?? []),
    gateways.length > 0 ? '`trunkline status --gateway PID` shows one; so do ps, logs, restart, metrics and web.' : '',
  ];
  return sections.filter((section) => section !== '').join('\n\n');
}

/** `trunkline hub status`: the hub, and the earlier ones that still drain. */
export async function hubStatus({ settings, isJson }: Invocation): Promise<number> {
  const show = async (open: OpenGateway) => {
    const facts = await describeHubs(open, false);
    return await answer(isJson, facts, () => hubText(facts, VERSION));
  };
  return await withGateway(settings, show, 'hub');
}

/** `trunkline restart SERVER`: restarts a server of the running gateway. */
export async function restartServer({ settings, words: [server = ''], isJson }: Invocation): Promise<number> {
  return await withGateway(settings, async ({ control, gateway, report }) => {
    await control.request('restart', { server });
    const text = `Server "${server}" is being restarted. Its calls in flight fail.`;
    if (isJson) await printJson({ server, restarting: true });
    else note(`${text} \`trunkline status\` shows when it is ready.`);
    const { servers } = await report({ server });
    const used = servers[0]?.packageVersion ?? undefined;
    const installed = await installedVersion({ ...settings, config: gateway.configFile }, server);
    if (used !== undefined && installed !== undefined && used !== installed)
      tell(oldVersionText(gateway, used, installed));
    return EXIT.ok;
  });
}

/** The version that a server of the configuration would run if a gateway read the file now; `undefined` if it runs no package. */
async function installedVersion(settings: GlobalOptions, server: string): Promise<string | undefined> {
  const { readConfig } = await import('../../../app/read-config.js');
  const config = await readConfig(settings).catch(() => undefined);
  return config?.servers.find(({ key }) => key === server)?.package?.found?.version;
}

/** Says that a restart does not take the version of `trunkline update`. */
export function oldVersionText({ kind, configFile }: RunningGateway, used: string, installed: string): string {
  const restart = kind === 'hub' ? ', or with `trunkline hub restart`' : ', or when the gateway is restarted';
  return `It runs version ${used} again, although ${installed} is installed: the gateway takes that when ${configFile} is saved${restart}.`;
}
