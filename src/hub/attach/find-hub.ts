import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { errorCode } from '../../host/errors/error-text.js';
import { isSameSecret } from '../../host/sealed-bytes.js';
import type { ByteReader } from '../../wire/io/byte-reader.js';
import { isRecord, parseJson } from '../../wire/json/json-value.js';
import { addressIn, hasPipe, isClaimHeld, isRunningBehind, SYSTEM_FORM } from '../endpoint.js';
import { type Claim, claimSuccessor, hubFiles, isHubFailing, latestHub } from '../hub-folder.js';
import { newNonce, proofOf } from '../proof.js';
import {
  type ClientHello,
  FirstLineReader,
  type Hello,
  type HubChallenge,
  type HubRefusal,
  type Proof,
  type Welcome,
  WIRE,
} from '../wire.js';

export interface FindHubOptions {
  readonly folder: string;
  readonly hello: ClientHello;
  /** Must hand over the listener before it returns, because otherwise this process would accept the connections. */
  readonly start: (claim: Claim) => void;
  /** The kind of endpoint that a new hub gets. Absent for that of the system. */
  readonly form?: typeof SYSTEM_FORM;
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
export async function findHub({ folder, hello, start, form = SYSTEM_FORM }: FindHubOptions): Promise<FoundHub> {
  try {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
      const latest = latestHub(folder);
      const attempt: Attempt = latest === 0 ? { kind: 'dead' } : await attachTo(folder, latest, hello);
      if (attempt.kind === 'attached') return attempt;
      const isEnding = attempt.kind === 'refused' && attempt.because === 'ending';
      if (attempt.kind === 'refused' && attempt.because !== 'ending')
        return none(`the hub did not take the client, because ${whyRefused(attempt.because)}`);
      if (attempt.kind === 'silent') return none(silence(attempt));
      if (attempt.kind === 'forbidden') return none(`the hub cannot be reached (${attempt.message})`);
      if (isHubFailing(folder, Date.now())) return none(FAILING);
      if (attempt.kind !== 'dead' && !isEnding) {
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        continue;
      }
      const claim = await claimSuccessor(folder, latest, form);
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

const WHY_REFUSED: Readonly<Record<HubRefusal, string>> = {
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

function silence({ afterMs, isStarting }: Silence): string {
  const seconds = afterMs / 1_000;
  return isStarting
    ? `the hub was started, but does not listen after ${seconds} s; \`trunkline logs\` shows why, and \`trunkline hub stop\` ends it`
    : `the hub runs, but did not answer within ${seconds} s; if it was suspended, resume it, or end it with \`trunkline hub stop\``;
}

export type Attempt =
  | { readonly kind: 'attached'; readonly connection: HubConnection }
  /** No process listens at the address of the hub, or one that does not know the hub's token. */
  | { readonly kind: 'dead' }
  /** The hub ended before it answered. */
  | { readonly kind: 'ended' }
  | Silence
  /** This process may not connect to a socket, as in a sandbox. */
  | { readonly kind: 'forbidden'; readonly message: string }
  | { readonly kind: 'refused'; readonly because: HubRefusal };

/** The hub does not answer, although its process runs. It was suspended, or the machine is too slow. */
interface Silence {
  readonly kind: 'silent';
  readonly afterMs: number;
  /** Whether its process does not even listen yet. */
  readonly isStarting: boolean;
}

export interface HubConnection {
  readonly socket: Socket;
  readonly version: string;
  readonly pid: number;
  /** The number of a hub; `NaN` for another gateway. */
  readonly number: number;
  /** Passes the bytes from the hub to `reader` from now on. */
  readInto(reader: ByteReader): void;
}

/**
 * Longest wait for the first line of a hub that has answered clients before. Such a hub answers at once unless it hangs. A client waits
 * less than a second, because it can serve itself. A command waits longer, because `trunkline stop` kills a hub that does not answer.
 */
const ANSWER_WITHIN_MS = { client: 800, control: 2_000 };
/**
 * Longest wait for the first line of a hub behind a pipe, on Windows, because each start of a server holds up the hub there, for seconds if
 * ten start on a busy machine. Users have no command there that suspends a process.
 */
const PIPE_ANSWERS_WITHIN_MS = 10_000;
/** Longest wait for the first line of a hub that is starting, because it has to load its code. */
const FIRST_ANSWER_WITHIN_MS = 15_000;

/** Pause between two attempts while the process of a hub starts, which listens itself. */
const STARTING_MS = 20;
/** Pause between two attempts while more clients wait for a hub than its socket lets wait. */
const FULL_MS = 100;
/** Time after which a client waits only for the process of the claim itself, and not for a later process with its pid. */
const SURE_AFTER_MS = 1_000;

/** Attaches to the hub with this number in this folder, or to the other gateway with this name. Never rejects. */
export async function attachTo(folder: string, name: number | string, hello: ClientHello): Promise<Attempt> {
  const { folder: own, ready, ended } = hubFiles(folder, name);
  const answerMs = hasPipe(own) ? PIPE_ANSWERS_WITHIN_MS : ANSWER_WITHIN_MS[hello.role];
  const waitMs = existsSync(ready) ? answerMs : FIRST_ANSWER_WITHIN_MS;
  const begunAt = process.uptime();
  for (;;) {
    // A pipe exists for as long as a client of the ended hub has its end.
    if (existsSync(ended)) return { kind: 'dead' };
    const attempt = await attachOnce(folder, name, hello, waitMs);
    if (attempt.kind === 'attached' || attempt.kind === 'refused') return attempt;
    const waitedMs = (process.uptime() - begunAt) * 1_000;
    if (attempt.kind === 'full') {
      if (waitedMs >= waitMs) return { kind: 'silent', afterMs: waitMs, isStarting: false };
      await new Promise((resolve) => setTimeout(resolve, FULL_MS));
      continue;
    }
    const isHeld = await isClaimHeld(own, waitedMs >= SURE_AFTER_MS);
    // Another program listens under the name of the hub, which has ended.
    if (isHeld === false) return { kind: 'dead' };
    if (isHeld !== true || attempt.kind !== 'dead' || existsSync(ready)) return attempt;
    if (waitedMs >= waitMs) return { kind: 'silent', afterMs: waitMs, isStarting: true };
    await new Promise((resolve) => setTimeout(resolve, STARTING_MS));
  }
}

/** `full`: the process of the hub runs, but the queue of its socket has no room for another client. */
type OneAttempt = Attempt | { readonly kind: 'full' };

function attachOnce(folder: string, name: number | string, hello: ClientHello, waitMs: number): Promise<OneAttempt> {
  const files = hubFiles(folder, name);
  let token: string;
  let path: string;
  try {
    token = readFileSync(files.token, 'latin1');
    path = addressIn(files.folder);
  } catch (error) {
    // Other errors, such as a lack of file descriptors, do not show whether the hub runs.
    return Promise.resolve({ kind: DEAD.has(errorCode(error) ?? '') ? 'dead' : 'ended' });
  }
  return new Promise((resolve) => {
    const over = (attempt: OneAttempt) => {
      clearTimeout(timer);
      if (attempt.kind !== 'attached') socket.destroy();
      resolve(attempt);
    };
    const nonce = newNonce();
    const second = new FirstLineReader((line) => {
      const answer = parseJson(line ?? '') as Welcome | undefined;
      if (!isRecord(answer) || !('ok' in answer)) {
        over({ kind: 'ended' });
      } else if (!answer.ok) {
        over({ kind: 'refused', because: answer.because });
      } else {
        const { version, pid } = answer;
        const readInto = (reader: ByteReader) => {
          second.handOver(reader);
          socket.resume();
        };
        // Do not read before the caller has passed a reader.
        socket.pause();
        over({ kind: 'attached', connection: { socket, version, pid, number: Number(name), readInto } });
      }
    });
    const first = new FirstLineReader((line) => {
      const answer = parseJson(line ?? '') as Proof | undefined;
      if (!isRecord(answer) || typeof answer.nonce !== 'string' || typeof answer.proof !== 'string') {
        over({ kind: 'ended' });
        return;
      }
      const nonces = { client: nonce, hub: answer.nonce };
      if (!isSameSecret(answer.proof, proofOf('hub', token, nonces))) {
        over({ kind: 'dead' });
        return;
      }
      first.handOver(second);
      // The variables of the client are secrets, so this comes after the proof.
      const proof = proofOf('client', token, nonces);
      socket.write(`${JSON.stringify({ wire: WIRE, proof, ...hello } satisfies Hello)}\n`);
    });
    const socket = connect({
      path,
      // Keeps the socket open for the last answers to a client that has closed its end.
      allowHalfOpen: true,
      onread: {
        buffer: () => first.freeSpace,
        callback: (byteLength) => {
          first.filled(byteLength);
          return true;
        },
      },
    });
    const timer = setTimeout(() => over({ kind: 'silent', afterMs: waitMs, isStarting: false }), waitMs);
    socket.once('error', (error) => {
      const code = errorCode(error) ?? '';
      if (FORBIDDEN.has(code)) over({ kind: 'forbidden', message: error.message });
      else if (code === 'EAGAIN') over({ kind: 'full' });
      else if (code === 'ECONNREFUSED') {
        // The answer of the system may take longer than that of a hub.
        clearTimeout(timer);
        void isRunningBehind(files).then((isRunning) => over({ kind: isRunning ? 'full' : 'dead' }));
      } else over({ kind: DEAD.has(code) ? 'dead' : 'ended' });
    });
    socket.once('end', () => over({ kind: 'ended' }));
    socket.once('close', (hadError) => hadError || over({ kind: 'ended' }));
    socket.write(`${JSON.stringify({ wire: WIRE, nonce } satisfies HubChallenge)}\n`);
  });
}

const DEAD = new Set(['ENOENT', 'ENOTDIR', 'ENOTSOCK']);
const FORBIDDEN = new Set(['EACCES', 'EPERM', 'EAFNOSUPPORT']);
