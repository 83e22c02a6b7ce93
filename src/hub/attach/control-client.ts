import { VERSION } from '../../version.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { type ControlReply, type ControlRequest, lineReader } from '../control.js';
import { type Claim, claimSuccessor, hubNumbers, latestHub } from '../hub-folder.js';
import { attachTo, type HubConnection } from './find-hub.js';

/** A connection to a hub, or to another gateway, for the commands of a user. */
export class HubControl {
  readonly version: string;
  readonly pid: number;
  /** The number of the hub; `NaN` for another gateway. */
  readonly number: number;
  /** Resolves when the connection is closed, for example because the process of the hub has ended. */
  readonly closed: Promise<void>;
  readonly #connection: HubConnection;
  readonly #pending = new Map<
    number,
    { resolve(result: unknown): void; reject(error: Error): void; onEvent(event: unknown): void }
  >();
  #lastId = 0;
  #hasEnded = false;

  constructor(connection: HubConnection) {
    this.#connection = connection;
    this.version = connection.version;
    this.pid = connection.pid;
    this.number = connection.number;
    connection.readInto(lineReader((line = '') => this.#received(line)));
    let onClosed: () => void = () => {};
    this.closed = new Promise((resolve) => {
      onClosed = resolve;
    });
    const ended = () => {
      this.#hasEnded = true;
      onClosed();
      for (const { reject } of this.#pending.values()) reject(new Error(UNANSWERED));
      this.#pending.clear();
    };
    connection.socket.once('end', ended);
    connection.socket.once('close', ended);
    connection.socket.on('error', () => {});
  }

  /** Resolves with the result of the command. Rejects with the error of the hub, whose message is a sentence. `onEvent` gets its events. */
  request(command: string, params: Readonly<Record<string, unknown>> = {}, onEvent = NOBODY): Promise<unknown> {
    this.#lastId += 1;
    const request: ControlRequest = { id: this.#lastId, command, params };
    if (this.#hasEnded) return Promise.reject(new Error(UNANSWERED));
    return new Promise((resolve, reject) => {
      this.#pending.set(request.id, { resolve, reject, onEvent });
      this.#connection.socket.write(`${JSON.stringify(request)}\n`);
    });
  }

  /** Whether the connection is closed, so that every request is rejected. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  close(): void {
    this.#connection.socket.destroy();
  }

  #received(line: string): void {
    const reply = parseJson(line);
    if (!isRecord(reply)) return;
    const { id, ...answer } = reply as ControlReply & Record<string, unknown>;
    const pending = this.#pending.get(id);
    if ('event' in answer) {
      pending?.onEvent(answer.event);
      return;
    }
    this.#pending.delete(id);
    if ('error' in answer) pending?.reject(new Error(String(answer.error)));
    else pending?.resolve(answer.result);
  }
}

const UNANSWERED = 'The gateway ended before it answered.';
const NOBODY = (_event: unknown): void => {};

export type NoControl = 'not running' | 'silent' | 'refused';

/**
 * Connects for commands to the hub of this folder with this number, or to the other gateway with this name. Starts none.
 * `version` is the version of this process.
 */
export async function openControl(
  folder: string,
  version: string,
  name: number | string = latestHub(folder),
): Promise<HubControl | NoControl> {
  // Commands use no variables and no folder of the client.
  const person = { pid: process.pid, folder: '', environment: {}, resumed: 0 };
  const attempt = await attachTo(folder, name, { ...person, role: 'control', version });
  switch (attempt.kind) {
    case 'attached':
      return new HubControl(attempt.connection);
    case 'silent':
      return 'silent';
    case 'refused':
      return attempt.because === 'ending' ? 'not running' : 'refused';
    default:
      return 'not running';
  }
}

/**
 * Makes the hubs with smaller numbers send their clients to hub `number`. A client moves when it has nothing in flight.
 * Resolves with the numbers of the earlier hubs that run.
 */
export async function movePredecessors(folder: string, number: number, version: string): Promise<ReadonlySet<number>> {
  const running = new Set<number>();
  for (const earlier of hubNumbers(folder)) {
    if (earlier >= number) break;
    const control = await openControl(folder, version, earlier);
    if (control !== 'not running') running.add(earlier);
    if (typeof control === 'string') continue;
    // An error means that the hub has ended, and then it has no clients to move.
    await control.request('move').catch(() => {});
    control.close();
  }
  return running;
}

/**
 * Starts a hub of this version if the hub `older` has an older version. The clients of the older hub move when they have
 * nothing in flight. The older hub serves on if its successor cannot be started.
 */
export async function succeedOlder(
  folder: string,
  older: { readonly number: number; readonly version: string },
  start: (claim: Claim) => void,
): Promise<void> {
  if (older.version === VERSION) return;
  // Loads the comparison of versions here, because other commands do without its module.
  const { isNewer } = await import('../../servers/packages/package-needs.js');
  if (!isNewer(VERSION, older.version)) return;
  const claim = await claimSuccessor(folder, older.number).catch(() => undefined);
  if (claim === undefined) return;
  try {
    start(claim);
  } catch {
    return;
  }
  // Clients that move before the new hub runs wait in the queue of its socket.
  await movePredecessors(folder, claim.number, VERSION);
}
