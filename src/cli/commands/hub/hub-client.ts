import { isUtf8 } from 'node:buffer';
import type { GlobalOptions } from '../../../app/global-options.js';
import type { ClientConnection } from '../../../app/open-pipe.js';
import { ConfigLocation, currentFolder } from '../../../config/file/find-config.js';
import { folderOfHub, helloOf, hubStarter, isHubWanted } from '../../../hub/attach/attach.js';
import { type HubControl, openControl } from '../../../hub/attach/control-client.js';
import { attachTo, findHub, type HubConnection, whyRefused } from '../../../hub/attach/find-hub.js';
import type { FoundTools } from '../../../hub/control.js';
import { gatewayFolders, inspectHubFolder, latestHub } from '../../../hub/hub-folder.js';
import { FrameReader } from '../../../hub/wire.js';
import { userDataFolder, userHubsFolder } from '../../../state/user-files.js';
import type { StatusReport } from '../../../status/status.js';
import type { ViewTools } from '../../../status/tool-report.js';
import { VERSION } from '../../../version.js';
import { RPC_CODES, RpcError } from '../../../wire/jsonrpc/message.js';
import { createScan } from '../../../wire/mcp/envelope.js';
import { LocalClient, type ToldProfile } from '../../local-client.js';
import { isQuietWanted, tell } from '../../output.js';

/*
 * The way of `trunkline call` and its like to the running gateway. An agent runs them again and again, so this file loads neither the code
 * of a gateway nor that of tables.
 */

/** The tools of a gateway, for one command: of the running gateway, or of one that the command has started. */
export interface ToolSource {
  readonly client: LocalClient;
  /** Returns the tools that each view shows and hides. */
  views(): Promise<readonly ViewTools[]>;
  /** Returns the tools that fit to the arguments of `trunkline__find_tools`, as clients of the command's view see them. */
  find(args: Readonly<Record<string, unknown>>): Promise<FoundTools>;
}

/** A client of the running gateway, for one command. */
export interface HubClientForCommand extends ToolSource {
  /** Asks the gateway for the definition of a tool, as JSON. Null if it is not known; the list of the client may wait for it. */
  definition(name: string): Promise<string | null>;
  /** Asks the gateway for the reports of its servers. */
  report(): Promise<StatusReport>;
  close(): void;
}

interface OpenOptions {
  /** When to tell the user which gateway it is: if the configuration has several. */
  readonly says?: 'if alike';
  /** Whether to start the hub of the configuration if no gateway runs. */
  readonly starts?: boolean | undefined;
}

/** Connects a command to the running gateway, if any. Names it if the configuration has several. Reports a refusal on stderr. */
export async function runningHub(settings: GlobalOptions, starts = false): Promise<HubClientForCommand | undefined> {
  const opened = await openHubClient(settings, { says: 'if alike', starts });
  if (typeof opened !== 'string') return opened;
  tell(`trunkline: the running gateway cannot be used, because ${opened}; this command starts servers of its own`);
  return undefined;
}

/**
 * Connects a command to the gateway of its configuration as a client: the hub, else one that serves HTTP, else one on stdin.
 * Returns `undefined` if none runs, or for a hub if TRUNKLINE_HUB is `off`. If the gateway refuses the client, returns the reason as a
 * sentence without a period.
 */
export async function openHubClient(
  options: GlobalOptions,
  { says, starts = false }: OpenOptions = {},
): Promise<HubClientForCommand | string | undefined> {
  const found = (await findOwnHub(options)) ?? (await findAny(options, says));
  if (typeof found === 'object') return await attachAt(found, options);
  return found === undefined && starts ? await startOwnHub(options) : found;
}

/** A gateway that takes the commands of this user. */
interface FoundGateway {
  readonly folder: string;
  readonly name: number | string;
  readonly configFile: string;
  readonly control: HubControl;
}

/**
 * Finds the latest hub of the configuration, which all commands prefer, without a look at other gateways. Returns `undefined` if it does not
 * answer, or if the user may have to be told about another gateway.
 */
async function findOwnHub(options: GlobalOptions): Promise<FoundGateway | undefined> {
  if (options.gateway !== undefined || process.env.TRUNKLINE_HUB === 'off') return undefined;
  try {
    const configFile = new ConfigLocation(options).file;
    const hubsFolder = userHubsFolder();
    if (!isQuietWanted() && gatewayFolders(hubsFolder).length > 0) return undefined;
    const { folder } = inspectHubFolder({ configFile, dataFolder: userDataFolder(), hubsFolder });
    const name = folder === undefined ? 0 : latestHub(folder);
    if (folder === undefined || name === 0) return undefined;
    const control = await openControl(folder, VERSION, name);
    return typeof control === 'string' ? undefined : { folder, name, configFile, control };
  } catch {
    // The look at all gateways meets the same fault, and reports it.
    return undefined;
  }
}

async function findAny(options: GlobalOptions, says: OpenOptions['says']): Promise<FoundGateway | string | undefined> {
  const { openGateway } = await import('./hub-access.js');
  const open = await openGateway(options, says === undefined ? {} : { says });
  if ('because' in open) return REFUSALS[open.kind];
  const { control, gateway } = open;
  const { folder, name, configFile = '' } = gateway;
  if (gateway.kind !== 'hub' || process.env.TRUNKLINE_HUB !== 'off') return { folder, name, configFile, control };
  control.close();
  return undefined;
}

const REFUSALS = {
  'not running': undefined,
  silent: 'it does not answer',
  refused: 'it does not take commands of this version',
} as const;

/** Starts the hub of the configuration as a client does, and connects to it. Returns `undefined` if the hub is off. */
async function startOwnHub(options: GlobalOptions): Promise<HubClientForCommand | string | undefined> {
  const configFile = new ConfigLocation(options).file;
  if (process.env.TRUNKLINE_HUB === 'off' || !isHubWanted(configFile)) return undefined;
  const folder = folderOfHub(configFile);
  const hello = helloOf(configFile, 0, options.view ?? '');
  const found = await findHub({ folder, hello, start: hubStarter(options, { configFile, folder }) });
  if (found.kind === 'none') return found.because;
  const { connection } = found;
  const control = await openControl(folder, VERSION, connection.number);
  if (typeof control !== 'string') return await clientOver(connection, control, options.view);
  connection.socket.destroy();
  return REFUSALS[control] ?? 'it has ended';
}

async function attachAt(
  { folder, name, configFile, control }: FoundGateway,
  options: GlobalOptions,
): Promise<HubClientForCommand | string> {
  const attempt = await attachTo(folder, name, helloOf(configFile, 0, options.view ?? ''));
  if (attempt.kind === 'attached') return await clientOver(attempt.connection, control, options.view);
  control.close();
  return whyRefused(attempt.kind === 'refused' ? attempt.because : 'ending');
}

async function clientOver(
  connection: HubConnection,
  control: HubControl,
  view: string | undefined,
): Promise<HubClientForCommand | string> {
  try {
    // Servers are shared by clients with equal profiles. A profile of its own would start processes for this command.
    const [profile] = (await control.request('profiles')) as readonly ToldProfile[];
    const client = await LocalClient.connect(createScan(isUtf8), (...on) => overFrames(connection, ...on), profile);
    return {
      client,
      report: async () => (await control.request('report')) as StatusReport,
      views: async () => ((await control.request('tools')) as { readonly views: readonly ViewTools[] }).views,
      definition: async (name) => {
        const request = control.request('definition', { name, view: view ?? '' });
        return await request.then((text) => (typeof text === 'string' ? text : null)).catch(() => null);
      },
      find: async (args) => (await control.request('find', { args, view, folder: currentFolder() })) as FoundTools,
      close: () => {
        client.close();
        control.close();
      },
    };
  } catch (error) {
    connection.socket.destroy();
    control.close();
    if (error instanceof RpcError || !(error instanceof Error)) throw error;
    return error.message;
  }
}

const NEWLINE = 0x0a;
const LOST = 'The gateway ended before it answered. Whether the call took effect is unknown: check before repeating it';

/** Sends lines to the gateway, and takes the messages out of its frames. */
function overFrames(
  { socket, readInto }: HubConnection,
  receive: (message: Uint8Array) => void,
  fail: (error: Error) => void,
): ClientConnection {
  let pieces: Uint8Array[] = [];
  const frames = new FrameReader({
    write: (bytes) => {
      let start = 0;
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
        const line = Buffer.concat([...pieces, bytes.subarray(start, end)]);
        pieces = [];
        start = end + 1;
        if (line.length > 0) receive(line);
      }
      // A copy, because `frames` reads the next bytes into the same memory. `slice` of a `Buffer` would not copy.
      if (start < bytes.length) pieces.push(Buffer.from(bytes.subarray(start)));
    },
    message: () => false,
    // A command makes only a few requests, so it does not move to the successor of its hub.
    control: () => {},
  });
  const lost = () => fail(new RpcError(RPC_CODES.internalError, LOST, { reason: 'hub_exited', outcome: 'unknown' }));
  socket.once('end', lost);
  socket.once('close', lost);
  socket.on('error', () => {});
  readInto(frames);
  return {
    send: (message) => {
      socket.write(message);
      socket.write('\n');
    },
    close: () => socket.destroy(),
  };
}
