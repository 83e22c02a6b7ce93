import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import type { GlobalOptions } from '../app/global-options.js';
import { ConfigPlace } from '../config/file/find-config.js';
import { errorMessage } from '../errors/error-text.js';
import { UsageError } from '../errors/usage-error.js';
import type { StatusReport } from '../gateway/status/status.js';
import { folderOfHub, helloOf } from '../hub/attach/attach.js';
import { type HubControl, type NoControl, openControl } from '../hub/attach/control-client.js';
import { attachTo, type HubConnection, whyRefused } from '../hub/attach/find-hub.js';
import { FrameReader } from '../hub/attach/frame-reader.js';
import { hubFiles, hubLog, latestHub } from '../hub/hub-folder.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import { createScan } from '../mcp/envelope.js';
import { VERSION } from '../version.js';
import { type ClientConnection, LocalClient, type ToldProfile } from './local-client.js';

/** A client of the running hub, for one command. */
export interface HubClientForCommand {
  readonly client: LocalClient;
  /** Asks the hub for the reports of its servers. */
  report(): Promise<StatusReport>;
  close(): void;
}

type OpenedClient =
  | { readonly kind: 'opened'; readonly hub: HubClientForCommand }
  /** No hub runs. */
  | { readonly kind: 'none' }
  /** A hub runs and does not take the client. `because` is a sentence without a period. */
  | { readonly kind: 'refused'; readonly because: string };

/** Connects a command to the hub of its configuration as a client. Starts none. */
export async function openHubClient(options: GlobalOptions): Promise<OpenedClient> {
  if (process.env.TRUNKLINE_HUB === 'off') return { kind: 'none' };
  const { configFile, folder } = findHubSite(options);
  const control = await reachHub(folder);
  if (control === 'not running') return { kind: 'none' };
  if (control === 'silent') return { kind: 'refused', because: 'it does not answer' };
  if (control === 'refused') return { kind: 'refused', because: 'it does not take commands of this version' };
  try {
    const hello = helloOf(configFile, 0, options.view ?? '');
    // Servers are shared by clients with equal profiles. A profile of its own would start processes for this command.
    const [profile] = (await control.request('profiles')) as readonly ToldProfile[];
    const attempt = await attachTo(folder, control.number, hello);
    if (attempt.kind !== 'attached') {
      control.close();
      return { kind: 'refused', because: whyRefused(attempt.kind === 'refused' ? attempt.because : 'ending') };
    }
    const connection = attempt.connection;
    const client = await LocalClient.connect(createScan(isUtf8), (...on) => overFrames(connection, ...on), profile);
    const report = async () => (await control.request('report')) as StatusReport;
    const close = () => {
      client.close();
      control.close();
    };
    return { kind: 'opened', hub: { client, report, close } };
  } catch (error) {
    control.close();
    if (error instanceof RpcError || !(error instanceof Error)) throw error;
    return { kind: 'refused', because: error.message };
  }
}

const NEWLINE = 0x0a;
const LOST = 'The hub ended before it answered. Whether the call took effect is unknown: check before repeating it';

/** Sends lines to the hub, and takes the messages out of its frames. */
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
      if (start < bytes.length) pieces.push(bytes.slice(start));
    },
    message: () => false,
    // A command lasts for a few requests: it stays at a hub that has a successor, and keeps nothing for another one.
    control: () => {},
  });
  const lost = () => fail(new RpcError(RPC_CODES.internalError, LOST));
  socket.once('end', lost);
  socket.once('close', lost);
  socket.on('error', () => {});
  readInto({
    get freeSpace() {
      return frames.freeSpace;
    },
    filled: (byteLength) => frames.filled(byteLength),
  });
  return {
    send: (message) => {
      socket.write(message);
      socket.write('\n');
    },
    close: () => socket.destroy(),
  };
}

/** Where the hub of a configuration is, whether it runs or not. */
export interface HubSite {
  readonly configFile: string;
  readonly folder: string;
  /** The log of a hub that was not told another file. */
  readonly logFile: string;
}

/** Finds the place of the hub. Throws a `ConfigError` without a configuration file, a `UsageError` without a folder. */
export function findHubSite(options: GlobalOptions): HubSite {
  const configFile = new ConfigPlace(options).file;
  try {
    const folder = folderOfHub(configFile);
    return { configFile, folder, logFile: options.logFile ?? hubLog(folder) };
  } catch (cause) {
    const hint = 'name a folder that only you can enter in the variable TRUNKLINE_HUB_DIR';
    throw new UsageError(`no hub can run: ${errorMessage(cause)}`, hint, { cause });
  }
}

/** Connects to the hub that clients find, or to an earlier one. Starts none. */
export async function reachHub(folder: string, number?: number): Promise<HubControl | NoControl> {
  return await openControl(folder, VERSION, number);
}

/** The process that was started as the hub with this number, which clients find if there is none. */
export function notedPid(folder: string, number = latestHub(folder)): number | undefined {
  try {
    return Number(readFileSync(hubFiles(folder, number).pid, 'latin1')) || undefined;
  } catch {
    return undefined;
  }
}
