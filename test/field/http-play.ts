// A server behind a URL that a row plays with `node:http`: sound, but for what the row says.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message } from '../support/wire.js';
import { type Play, soundAnswer } from './play.js';

/** One request, with its whole body. */
export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The message in the body; an empty object if there is none. */
  readonly message: Message;
  /** The address of this server, without a slash at the end. */
  readonly origin: string;
  /** Number of the request, from 1. */
  readonly number: number;
}

/** A server, by what makes it different from a sound one. */
export interface HttpPlay extends Pick<Play, 'hello' | 'tools' | 'prompts' | 'resources' | 'templates' | 'result'> {
  /** Results by method, in place of those of a sound server. */
  readonly on?: Readonly<Record<string, Message>>;
  /** Takes requests that are answered in another way. Returns whether it took this one. */
  readonly take?: (request: HttpRequest, response: ServerResponse, server: HttpSpeaker) => boolean;
}

/** What a sound server would do, for rows that change only a part of it. */
export interface HttpSpeaker {
  /** All requests, in their order. */
  readonly heard: readonly HttpRequest[];
  /** Sends the sound answer as JSON, with these headers. */
  soundly(request: HttpRequest, response: ServerResponse, headers?: Record<string, string>): void;
  /** The sound answer to a message. */
  answerTo(message: Message): Message | undefined;
}

/** A played server that listens. */
export interface ListeningPlay {
  readonly origin: string;
  readonly heard: readonly HttpRequest[];
  close(): Promise<void>;
}

/** Listens on a free port of this machine. */
export async function listen(play: HttpPlay): Promise<ListeningPlay> {
  const heard: HttpRequest[] = [];
  const speaker: HttpSpeaker = {
    heard,
    answerTo: (message) => soundAnswer(play, message),
    soundly: ({ method, message }, response, headers = {}) => {
      const answer = soundAnswer(play, message);
      if (method === 'DELETE') response.writeHead(200, headers).end();
      else if (method !== 'POST') response.writeHead(405, headers).end();
      else if (answer === undefined) response.writeHead(202, headers).end();
      else response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(answer));
    },
  };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      const taken: HttpRequest = {
        ...{ method: request.method ?? '', path: request.url ?? '', headers: request.headers, body },
        ...{ message: parsed(body), origin: originOf(server), number: heard.length + 1 },
      };
      heard.push(taken);
      if (play.take?.(taken, response, speaker) !== true) speaker.soundly(taken, response);
    });
  });
  // On a busy machine, the next request may come at the moment at which the server would close an idle connection.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    origin: originOf(server),
    heard,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function parsed(body: string): Message {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}
