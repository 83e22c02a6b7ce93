import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { errorCode } from '../../host/errors/error-text.js';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { type Claim, claimSuccessor, hubFiles, isHubFailing, latestHub } from '../hub-folder.js';
import { FirstLineReader, type Hello, type Refusal, type Welcome, WIRE } from '../wire.js';

export interface FindHubOptions {
  readonly folder: string;
  readonly hello: Omit<Hello, 'wire' | 'token'>;
  /**
   * Starts the process of a hub with the claimed number and listener. Must hand over the listener before it returns, because
   * otherwise this process would accept the connections.
   */
  readonly start: (claim: Claim) => void;
}

export type FoundHub =
  | { readonly kind: 'attached'; readonly connection: HubConnection }
  /** No hub is available. `because` is a sentence without a period. */
  | { readonly kind: 'none'; readonly because: string };

/** Limit of the attempts to attach. Another attempt follows the start of a hub, or a hub that ended before it answered. */
const MAX_ATTEMPTS = 50;
/** Pause after a hub has closed the connection, because it is about to close its socket, too. */
const RETRY_MS = 10;

/** Attaches to the hub with the highest number, or starts the next hub if that one is dead or ending. Never rejects. */
export async function findHub({ folder, hello, start }: FindHubOptions): Promise<FoundHub> {
  try {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const latest = latestHub(folder);
      const attempt: Attempt = latest === 0 ? { kind: 'dead' } : await attachTo(folder, latest, hello);
      if (attempt.kind === 'attached') return attempt;
      const isEnding = attempt.kind === 'refused' && attempt.because === 'ending';
      if (attempt.kind === 'refused' && attempt.because !== 'ending')
        return none(`the hub did not take the client, because ${whyRefused(attempt.because)}`);
      if (attempt.kind === 'silent') return none(silence(attempt.afterMs));
      if (attempt.kind === 'forbidden') return none(`the hub cannot be reached (${attempt.message})`);
      if (isHubFailing(folder, Date.now())) return none(FAILING);
      if (attempt.kind !== 'dead' && !isEnding) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        continue;
      }
      const claim = await claimSuccessor(folder, latest);
      if (claim !== undefined) start(claim);
    }
    return none('each hub ended before it served this client');
  } catch (error) {
    return none(`the hub cannot be started (${error instanceof Error ? error.message : String(error)})`);
  }
}

function none(because: string): FoundHub {
  return { kind: 'none', because };
}

const WHY_REFUSED: Readonly<Record<Refusal, string>> = {
  off: 'the hub is off in the configuration',
  full: 'it has as many clients as it may have',
  ending: 'it is ending',
  token: 'it does not accept the token of its own file',
  malformed: 'it does not understand this version',
};

/** The refusal as a phrase, in which *it* is the hub. A hub of a later version may have unknown reasons. */
export function whyRefused(because: string): string {
  const reasons: Readonly<Record<string, string | undefined>> = WHY_REFUSED;
  return reasons[because] ?? 'its version has a reason that this version does not know';
}

const FAILING = 'three hubs failed within a minute, before they served a client; `trunkline logs` shows why';

function silence(afterMs: number): string {
  return `the hub runs, but did not answer within ${afterMs / 1_000} s; if it was suspended, resume it, or end it with \`trunkline hub stop\``;
}

export type Attempt =
  | { readonly kind: 'attached'; readonly connection: HubConnection }
  /** No process listens on the socket of the hub. */
  | { readonly kind: 'dead' }
  /** The hub ended before it answered. */
  | { readonly kind: 'ended' }
  /** The hub does not answer, although its process runs. It was suspended, or the machine is too slow. */
  | { readonly kind: 'silent'; readonly afterMs: number }
  /** This process may not connect to a socket, as in a sandbox. */
  | { readonly kind: 'forbidden'; readonly message: string }
  | { readonly kind: 'refused'; readonly because: Refusal };

export interface HubConnection {
  readonly socket: Socket;
  readonly version: string;
  readonly pid: number;
  /** The number of a hub; `NaN` for another gateway. */
  readonly number: number;
  /** From now on, passes the bytes from the hub to `reader`. */
  readInto(reader: ByteReader): void;
}

/**
 * Longest wait for the first line of a hub that has answered clients before. Such a hub answers at once unless it hangs. A
 * client waits less than a second, because it can serve itself. A command waits longer, because `trunkline stop` kills a hub
 * that does not answer.
 */
const ANSWER_WITHIN_MS = { client: 800, control: 2_000 };
/** Longest wait for the first line of a hub that is starting, because it has to load its code. */
const FIRST_ANSWER_WITHIN_MS = 15_000;

/** Attaches to the hub with this number in this folder, or to the other gateway with this name. Never rejects. */
export function attachTo(
  folder: string,
  name: number | string,
  hello: Omit<Hello, 'wire' | 'token'>,
): Promise<Attempt> {
  const files = hubFiles(folder, name);
  let token: string;
  let waitMs: number;
  try {
    token = readFileSync(files.token, 'latin1');
    waitMs = existsSync(files.ready) ? ANSWER_WITHIN_MS[hello.role] : FIRST_ANSWER_WITHIN_MS;
  } catch (error) {
    // Other errors, such as a lack of file descriptors, do not show whether the hub runs.
    return Promise.resolve({ kind: DEAD.has(errorCode(error) ?? '') ? 'dead' : 'ended' });
  }
  return new Promise((resolve) => {
    const first = new FirstLineReader((line) => {
      clearTimeout(timer);
      const answer = parseJson(line ?? '') as Welcome | undefined;
      if (!isRecord(answer) || !('ok' in answer)) {
        socket.destroy();
        resolve({ kind: 'ended' });
      } else if (!answer.ok) {
        socket.destroy();
        resolve({ kind: 'refused', because: answer.because });
      } else {
        const { version, pid } = answer;
        const readInto = (reader: ByteReader) => {
          first.handOver(reader);
          socket.resume();
        };
        // Do not read before the caller has passed a reader.
        socket.pause();
        resolve({ kind: 'attached', connection: { socket, version, pid, number: Number(name), readInto } });
      }
    });
    const socket = connect({
      path: files.socket,
      // Otherwise a client that closes its end would not get the last answers.
      allowHalfOpen: true,
      onread: {
        buffer: () => first.freeSpace,
        callback: (byteLength) => {
          first.filled(byteLength);
          return true;
        },
      },
    });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve({ kind: 'silent', afterMs: waitMs });
    }, waitMs);
    const over = (attempt: Attempt) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(attempt);
    };
    socket.once('error', (error) => {
      const code = errorCode(error) ?? '';
      if (FORBIDDEN.has(code)) over({ kind: 'forbidden', message: error.message });
      else over({ kind: DEAD.has(code) ? 'dead' : 'ended' });
    });
    socket.once('end', () => over({ kind: 'ended' }));
    socket.once('close', () => over({ kind: 'ended' }));
    socket.write(`${JSON.stringify({ wire: WIRE, token, ...hello } satisfies Hello)}\n`);
  });
}

const DEAD = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTDIR', 'ENOTSOCK']);
const FORBIDDEN = new Set(['EACCES', 'EPERM', 'EAFNOSUPPORT']);
