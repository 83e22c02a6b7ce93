import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { errorCode } from '../../errors/error-text.js';
import type { ByteReader } from '../../io/byte-reader.js';
import { isRecord, parseJson } from '../../json/json-value.js';
import { exists } from '../claim.js';
import { hubFiles } from '../hub-folder.js';
import { FirstLineReader, type Hello, type Refusal, type Welcome, WIRE } from '../wire.js';

/** Result of an attempt to reach a hub. */
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
  /** The version of the hub. */
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
    waitMs = exists(files.ready) ? ANSWER_WITHIN_MS : FIRST_ANSWER_WITHIN_MS;
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
