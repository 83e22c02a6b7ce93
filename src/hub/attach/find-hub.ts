import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { errorCode } from '../../errors/error-text.js';
import type { ByteReader } from '../../io/byte-reader.js';
import { isRecord, parseJson } from '../../json/json-value.js';
import { type Claim, claimSuccessor, hubFiles, isHubFailing, latestHub } from '../hub-folder.js';
import { FirstLineReader, type Hello, type Refusal, type Welcome, WIRE } from '../wire.js';

export interface FindHubOptions {
  readonly folder: string;
  readonly hello: Omit<Hello, 'wire' | 'token'>;
  /**
   * Starts the process of a hub with the claimed number on this listener. Must not return to the event loop before the
   * process has the listener, since this process would accept the connections.
   */
  readonly start: (claim: Claim) => void;
}

export type FoundHub =
  | { readonly kind: 'attached'; readonly connection: HubConnection }
  /** No hub can be had. `because` is a sentence without a period. */
  | { readonly kind: 'none'; readonly because: string };

/** Each attempt ends with a hub that serves, or with one that others start or that is known to be dead. */
const MAX_ATTEMPTS = 50;
/** A hub that has closed a connection is about to close its socket, too. */
const RETRY_MS = 10;

/** Attaches to the hub of this folder, and starts one if none runs. Never rejects. */
export async function findHub({ folder, hello, start }: FindHubOptions): Promise<FoundHub> {
  try {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const latest = latestHub(folder);
      const attempt: Attempt = latest === 0 ? { kind: 'dead' } : await attachTo(folder, latest, hello);
      if (attempt.kind === 'attached') return attempt;
      const isEnding = attempt.kind === 'refused' && attempt.because === 'ending';
      if (attempt.kind === 'refused' && attempt.because !== 'ending')
        return none(`the shared process did not take the client: ${whyRefused(attempt.because)}`);
      if (attempt.kind === 'silent') return none(silence(attempt.afterMs));
      if (isHubFailing(folder, Date.now())) return none(FAILING);
      if (attempt.kind !== 'dead' && !isEnding) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        continue;
      }
      const claim = await claimSuccessor(folder, latest);
      if (claim !== undefined) start(claim);
    }
    return none('the shared process ended each time before it served this client');
  } catch (error) {
    return none(`the shared process cannot be started (${error instanceof Error ? error.message : String(error)})`);
  }
}

function none(because: string): FoundHub {
  return { kind: 'none', because };
}

const WHY_REFUSED: Readonly<Record<Refusal, string>> = {
  off: 'the configuration does not say `hub: auto`',
  full: 'it has as many clients as it may have',
  ending: 'it is ending',
  token: 'it does not accept the token of its own file',
  malformed: 'it does not understand this version',
};

/** Text for the reason of a hub that refuses a client; *it* is the hub. A hub of a later version may have further reasons. */
export function whyRefused(because: string): string {
  const reasons: Readonly<Record<string, string | undefined>> = WHY_REFUSED;
  return reasons[because] ?? 'its version has a reason that this version does not know';
}

const FAILING =
  'the shared process has failed three times within a minute before it served anybody; its log says why: `trunkline logs`';

function silence(afterMs: number): string {
  return `the shared process runs but did not answer within ${afterMs / 1_000} s; if it was suspended, resume it, or end it with \`trunkline hub stop\``;
}

export type Attempt =
  | { readonly kind: 'attached'; readonly connection: HubConnection }
  /** No process listens: the hub is dead, or has never been. */
  | { readonly kind: 'dead' }
  /** The hub ended before it answered. */
  | { readonly kind: 'ended' }
  /** The hub does not answer, although its process lives: it was stopped, or the machine is too slow. */
  | { readonly kind: 'silent'; readonly afterMs: number }
  | { readonly kind: 'refused'; readonly because: Refusal };

export interface HubConnection {
  readonly socket: Socket;
  readonly version: string;
  readonly pid: number;
  readonly number: number;
  /** Passes what the hub sends from now on to `reader`. */
  readInto(reader: ByteReader): void;
}

/** A hub that has served somebody answers at once, unless something keeps it from running. */
const ANSWER_WITHIN_MS = 2_000;
/** A hub that is starting has to load its code first. */
const FIRST_ANSWER_WITHIN_MS = 15_000;

/** Attaches to hub `number` of this folder. Never rejects. */
export function attachTo(folder: string, number: number, hello: Omit<Hello, 'wire' | 'token'>): Promise<Attempt> {
  const files = hubFiles(folder, number);
  let token: string;
  let waitMs: number;
  try {
    token = readFileSync(files.token, 'latin1');
    waitMs = existsSync(files.ready) ? ANSWER_WITHIN_MS : FIRST_ANSWER_WITHIN_MS;
  } catch (error) {
    // Without file descriptors, for example, nothing is known of the hub.
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
        // Nothing may be read before the caller says where to.
        socket.pause();
        resolve({ kind: 'attached', connection: { socket, version, pid, number, readInto } });
      }
    });
    const socket = connect({
      path: files.socket,
      // A client that has sent its last request still gets the answers.
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
    const over = (kind: 'dead' | 'ended') => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ kind });
    };
    socket.once('error', (error) => over(DEAD.has(errorCode(error) ?? '') ? 'dead' : 'ended'));
    socket.once('end', () => over('ended'));
    socket.once('close', () => over('ended'));
    socket.write(`${JSON.stringify({ wire: WIRE, token, ...hello } satisfies Hello)}\n`);
  });
}

const DEAD = new Set(['ECONNREFUSED', 'ENOENT', 'ENOTDIR', 'ENOTSOCK']);
