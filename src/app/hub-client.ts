import { isUtf8 } from 'node:buffer';
import type { StatusReport } from '../gateway/status/status-report.js';
import type { HubControl } from '../hub/attach/control-client.js';
import { whyRefused } from '../hub/attach/find-hub.js';
import { FrameReader } from '../hub/attach/frame-reader.js';
import { attachTo, type HubConnection } from '../hub/attach/hub-connection.js';
import { RPC_CODES, RpcError } from '../jsonrpc/rpc-error.js';
import { createScan } from '../mcp/envelope.js';
import { helloOf } from './attach.js';
import type { GlobalOptions } from './global-options.js';
import { type ClientConnection, LocalClient, type ToldProfile } from './local-client.js';
import { findHubSite, reachHub } from './running-hub.js';

/** A client of the running hub, for one command. */
export interface HubClientForCommand {
  readonly client: LocalClient;
  /** Everything that the hub knows of its servers. */
  report(): Promise<StatusReport>;
  close(): void;
}

export type OpenedClient =
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
    const profile = await profileToUse(control);
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

/**
 * The profile of a client of the hub. Servers are shared by clients with equal profiles, so that a command with a profile of
 * its own would start processes of its own.
 */
async function profileToUse(control: HubControl): Promise<ToldProfile | undefined> {
  const profiles = (await control.request('profiles')) as readonly ToldProfile[];
  return profiles[0];
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
