// Clients of the official SDK that speak the revisions of either era, and the built CLI for them to speak to.
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { CLI, type Message } from './gateway-process.js';
import { Place, type Running } from './http-place.js';
import { WITH_HUB } from './hub-place.js';

/** An `auto` client tries the modern era first, and falls back to `initialize`. */
export type ClientEra = 'legacy' | 'modern' | 'auto';
export type TransportName = 'stdio' | 'HTTP';

const MODERN = '2026-07-28';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
/** Servers choose them by chance. */
const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
export const OWN_TOOL = 'trunkline__status';
/** Requests of both eras. */
const COMPARED = /^(tools|prompts|completion)\/|^resources\/(list|read|templates)/;
const NEGOTIATION = {
  legacy: { mode: 'legacy' },
  modern: { mode: { pin: MODERN } },
  auto: { mode: 'auto' },
} as const;

/** Entries of the user, by the name of the field. */
const ENTERED: Message = {
  color: 'blue',
  context: 'testing',
  email: 'ada@example.com',
  name: 'Ada',
  ok: true,
  username: 'ada',
};

/** Messages that a client got: answers in their order, the rest as texts in any order. */
export interface ClientRecord {
  readonly answers: readonly [method: string, answer: Message][];
  readonly notifications: readonly string[];
  readonly asked: readonly string[];
}

/** A client with a user, a model and one root. It answers every server request, and records it. */
export class SdkClient {
  readonly client: Client;
  /** Server requests in the words of the server. In the modern era, the SDK takes them from results. */
  readonly asked: Message[] = [];
  /** Every message as it came, in order. The handlers of the SDK miss notifications that come in one chunk with the result. */
  readonly received: Message[] = [];
  /** The methods of the requests that were sent, by their ids. */
  readonly #sent = new Map<unknown, string>();
  /** Prefix of the names of the server's tools and prompts. */
  readonly #prefix: string;

  constructor(era: ClientEra, prefix = '') {
    this.#prefix = prefix;
    const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
    this.client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: NEGOTIATION[era] });
    this.client.setRequestHandler('elicitation/create', (request) => {
      this.asked.push(unsigned(request as Message));
      if (request.params.mode === 'url') return { action: 'accept' };
      const fields = Object.keys(request.params.requestedSchema.properties);
      return { action: 'accept', content: Object.fromEntries(fields.map((field) => [field, ENTERED[field]])) };
    });
    this.client.setRequestHandler('sampling/createMessage', (request) => {
      this.asked.push(request);
      return { role: 'assistant', model: 'test', content: { type: 'text', text: 'Paris' } };
    });
    this.client.setRequestHandler('roots/list', (request) => {
      this.asked.push(request);
      return { roots: [{ uri: 'file:///home/ada', name: 'Home' }] };
    });
  }

  async connect(transport: Transport): Promise<void> {
    await this.client.connect(transport);
    const { onmessage } = transport;
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if ('method' in message && 'id' in message) this.#sent.set(message.id, message.method);
      return send(message, options);
    };
    transport.onmessage = (message, extra) => {
      this.received.push(message);
      onmessage?.(message, extra);
    };
  }

  /** The name of a tool or a prompt, as this client sees it. */
  named(name: string): string {
    return `${this.#prefix}${name}`;
  }

  /** The text of what the tool answers. */
  async call(tool: string, args: Message = {}, meta?: Message): Promise<string> {
    const params = { name: this.named(tool), arguments: args, ...(meta === undefined ? {} : { _meta: meta }) };
    const { content } = await this.client.callTool(params);
    return content.map((block) => (block.type === 'text' ? block.text : block.type)).join();
  }

  /** The notifications of this method. */
  of(method: string): Message[] {
    return this.received.filter((message) => message.method === method && message.id === undefined);
  }

  /** Messages since `forget`, without the parts that a gateway, the other era or chance may change. */
  record(): ClientRecord {
    const answers = this.received.flatMap(({ id, method, result, error }): [string, Message][] => {
      const asked = this.#sent.get(id) ?? '';
      if (method !== undefined || !COMPARED.test(asked) || result?.resultType === 'input_required') return [];
      return [[asked, error === undefined ? this.#ownResult(result) : { code: error.code, data: error.data }]];
    });
    const notifications = this.received.filter(({ id, method }) => id === undefined && method !== ACKNOWLEDGED);
    return { answers, notifications: notifications.map(textOf).sort(), asked: this.asked.map(textOf).sort() };
  }

  #ownResult({ resultType, ttlMs, cacheScope, _meta, ...result }: Message): Message {
    const { [SERVER_INFO]: _, ...meta } = _meta ?? {};
    const unprefixed = (entry: Message) =>
      entry.name.startsWith(this.#prefix) ? { ...entry, name: entry.name.slice(this.#prefix.length) } : entry;
    const lists = Object.entries(result).map(([member, value]) => {
      if (member !== 'tools' && member !== 'prompts') return [member, value];
      return [member, value.filter(({ name }: Message) => name !== OWN_TOOL).map(unprefixed)];
    });
    return { ...Object.fromEntries(lists), ...(Object.keys(meta).length > 0 && { _meta: meta }) };
  }

  /** Empties what was recorded, so that a test that shares the client sees only what comes from now on. */
  forget(): void {
    this.asked.length = 0;
    this.received.length = 0;
  }
}

/** An entry of the configuration, for a script that Node runs. */
export interface PlacedServer {
  readonly program: string;
  readonly args?: readonly string[];
  readonly era?: 'legacy' | 'modern';
}

/** The built CLI in a folder of its own, with default settings: clients on stdio share a hub. */
export class SdkPlace {
  readonly #place = new Place();
  readonly #configured: readonly string[];
  readonly #clients: Client[] = [];
  #serving: Promise<Running> | undefined;

  constructor(servers: Readonly<Record<string, PlacedServer>>) {
    Object.assign(this.#place.environment, WITH_HUB, { TRUNKLINE_HUB_DIR: this.#place.file('hubs') });
    const entries = Object.entries(servers).map(([key, { program, args = [], ...settings }]) => {
      return [key, { ...settings, ...this.#place.server(program, ...args) }];
    });
    this.#configured = this.#place.configure(Object.fromEntries(entries));
  }

  /** Resolves when the client and Trunkline have agreed on a revision. */
  async connect(era: ClientEra, transport: TransportName, prefix?: string): Promise<SdkClient> {
    const open = () => (transport === 'HTTP' ? this.#http() : this.#stdio([CLI, ...this.#configured]));
    return await this.#connect(new SdkClient(era, prefix), await open());
  }

  /** The same without Trunkline: the client starts the server itself. */
  async connectDirectly(era: ClientEra, { program, args = [] }: PlacedServer): Promise<SdkClient> {
    return await this.#connect(new SdkClient(era), this.#stdio(this.#place.server(program, ...args).args));
  }

  /** To be called at the end of each test, whatever became of it. */
  async dispose(): Promise<void> {
    try {
      await Promise.all(this.#clients.map((client) => client.close()));
      await this.#place.run(['stop', ...this.#configured]);
    } finally {
      await this.#place.dispose();
    }
  }

  async #connect(peer: SdkClient, transport: Transport): Promise<SdkClient> {
    this.#clients.push(peer.client);
    await peer.connect(transport);
    return peer;
  }

  #stdio(args: readonly string[]): Transport {
    const env = this.#place.environment as Record<string, string>;
    return new StdioClientTransport({ command: process.execPath, args: [...args], env, stderr: 'ignore' });
  }

  async #http(): Promise<Transport> {
    this.#serving ??= this.#place.serve({ config: this.#configured[1] ?? '' });
    const { url } = await this.#serving;
    const headers = { authorization: `Bearer ${this.#place.token}` };
    return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  }
}

function textOf({ method, params: { _meta, progressToken, ...own } = {} }: Message): string {
  return JSON.stringify([method, own]).replaceAll(UUID, 'UUID');
}

/** A question in the words of its server, before which Trunkline puts the name of the server. */
function unsigned(request: Message): Message {
  const { message } = request.params ?? {};
  if (typeof message !== 'string') return request;
  return { ...request, params: { ...request.params, message: message.replace(SIGNATURE, '') } };
}

const SIGNATURE = /^Server "[^"]+" asks(?: you to open a page of [^ ]+)?: /;
