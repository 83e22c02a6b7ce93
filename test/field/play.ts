// A server on stdio that a row plays in memory: sound, but for what the row says.
import type { Readable, Writable } from 'node:stream';
import type { Message } from '../support/wire.js';

/** A method that the server answers in its own way. It says whatever it wants, and may answer later or never. */
export type Answering = (request: Message, server: Speaker) => void;

/** A server, by what makes it different from a sound one. */
export interface Play {
  /** Members of the result of `initialize` that replace those of a sound server. */
  readonly hello?: Message;
  /** Entries of the list of tools. */
  readonly tools?: readonly unknown[];
  readonly prompts?: readonly unknown[];
  readonly resources?: readonly unknown[];
  readonly templates?: readonly unknown[];
  /** The result of each call of a tool. */
  readonly result?: unknown;
  /**
   * Methods that are answered in another way: with this result, or as the function says. Notifications, too; `answer` takes what the
   * client answers.
   */
  readonly on?: Readonly<Record<string, Message | Answering>>;
  /** Called when the server starts. */
  readonly begin?: (server: Speaker) => void;
  /** Changes each line before it is written. */
  readonly line?: (line: string, message: Message) => string | Uint8Array;
}

/** Writes for a server. */
export interface Speaker {
  /** Messages that the client sent. */
  readonly heard: readonly Message[];
  /** Number of the start of this server, from 1. */
  readonly start: number;
  /** Writes bytes as they are. */
  write(bytes: string | Uint8Array): void;
  /** Writes to stderr. */
  log(text: string): void;
  /** Writes messages, one a line. */
  say(...messages: unknown[]): void;
  answer(request: Message, result: unknown): void;
  /** Answers as a sound server. */
  soundly(request: Message): void;
  /** Ends the process. */
  exit(): void;
}

/** A tool as a sound server lists it. */
export function tool(name: string, members: Message = {}): Message {
  return { name, inputSchema: { type: 'object', properties: { text: { type: 'string' } } }, ...members };
}

/** A question of a server in JSON, without the name of the server that Trunkline puts before its words. */
export function withoutServer(question: string): string {
  return question.replace(/Server \\"row\d+\\" asks[^:]*: /, '');
}

/** The result of a sound server; `undefined` if it answers with "method not found". */
export function soundResult(play: Play, { method, params }: Message): unknown {
  const { tools = [tool('echo')], prompts = [], resources = [], templates = [], hello = {} } = play;
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: {
          tools: {},
          ...(play.prompts && { prompts: {} }),
          ...((play.resources ?? play.templates) && { resources: {} }),
        },
        serverInfo: { name: 'played', version: '1' },
        ...hello,
      };
    case 'ping':
      return {};
    case 'tools/list':
      return { tools };
    case 'prompts/list':
      return { prompts };
    case 'resources/list':
      return { resources };
    case 'resources/templates/list':
      return { resourceTemplates: templates };
    case 'tools/call':
      return play.result ?? { content: [{ type: 'text', text: params.arguments?.text ?? 'hello' }] };
    default:
      return undefined;
  }
}

/** What a server answers: a whole message, or `undefined` for notifications and answers. */
export function soundAnswer(play: Play, request: Message): Message | undefined {
  const { id, method } = request;
  if (id === undefined || method === undefined) return undefined;
  const given = play.on?.[method];
  const result = given !== undefined && typeof given !== 'function' ? given : soundResult(play, request);
  return result === undefined
    ? { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }
    : { jsonrpc: '2.0', id, result };
}

/** The streams of the server, seen from outside. */
export interface PlayedPipes {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Plays a server on these streams. `exit` is called when the server ends. */
export function playServer(play: Play, start: number, pipes: PlayedPipes, exit: () => void): void {
  const heard: Message[] = [];
  const say = (message: Message) => {
    const line = `${JSON.stringify(message)}\n`;
    server.write(play.line?.(line, message) ?? line);
  };
  const server: Speaker = {
    heard,
    start,
    write: (bytes) => void (pipes.stdout.writable && pipes.stdout.write(bytes)),
    log: (text) => void pipes.stderr.write(text),
    say: (...messages) => {
      for (const message of messages) say(message as Message);
    },
    answer: ({ id }, result) => say({ jsonrpc: '2.0', id, result }),
    soundly: (request) => {
      const answer = soundAnswer(play, request);
      if (answer !== undefined) say(answer);
    },
    exit,
  };
  const take = (message: Message) => {
    heard.push(message);
    const given = play.on?.[message.method ?? 'answer'];
    if (typeof given === 'function') given(message, server);
    else server.soundly(message);
  };
  let rest = '';
  pipes.stdin.setEncoding('utf8');
  pipes.stdin.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) for (const message of [JSON.parse(line)].flat()) take(message);
  });
  play.begin?.(server);
}
