import { explain } from '../../host/errors/file-error.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { type ControlReply, type ControlRequest, lineReader } from '../control.js';
import type { HubPeer } from './hub-listener.js';

export interface ControlContext {
  /** Sends an event. Returns false if the event was dropped, because the receiver reads too slowly. */
  readonly emit: (event: unknown) => boolean;
  readonly signal: AbortSignal;
}

/** Carries out a command. Throws an error whose message is for the user. */
export type ControlCommand = (params: Readonly<Record<string, unknown>>, context: ControlContext) => unknown;

/** Size limit of a command in characters. */
const MAX_LINE_LENGTH = 64 * 1024;
/** Limit of the bytes that wait for a slow reader. Beyond it, events are dropped. */
const MAX_UNREAD_BYTES = 1024 * 1024;

export type ControlCommands = Readonly<Record<string, ControlCommand>>;

/** Serves the commands of a user on one connection. `load` is called for each command. */
export function serveControl(peer: HubPeer, load: () => Promise<ControlCommands>): void {
  const { stream, reader } = peer;
  const closed = new AbortController();
  stream.once('close', () => closed.abort());
  const send = (reply: ControlReply) => {
    if (stream.writable) stream.write(`${JSON.stringify(reply)}\n`);
  };
  const run = async ({ id, command, params }: ControlRequest) => {
    try {
      const commands = await load();
      const known = Object.hasOwn(commands, command) ? commands[command] : undefined;
      if (known === undefined)
        throw new Error(`this hub does not know the command "${command}"; it may be an older one`);
      const emit = (event: unknown) => {
        const hasRoom = stream.writableLength < MAX_UNREAD_BYTES;
        if (hasRoom) send({ id, event });
        return hasRoom;
      };
      send({ id, result: (await known(params, { emit, signal: closed.signal })) ?? null });
    } catch (error) {
      send({ id, error: explain(error) });
    }
  };
  peer.welcome();
  const take = (line: string | undefined) => {
    const request = readRequest(line);
    if (request === undefined) stream.destroy();
    else void run(request);
  };
  reader.handOver(lineReader(take, MAX_LINE_LENGTH));
  // The other end closes its side after its last request, and waits for the results.
  stream.once('end', () => stream.end());
}

function readRequest(line = ''): ControlRequest | undefined {
  const request = parseJson(line);
  if (!isRecord(request) || !isRecord(request.params)) return undefined;
  const isSound = typeof request.id === 'number' && typeof request.command === 'string';
  return isSound ? (request as unknown as ControlRequest) : undefined;
}
