// A client without a handshake at the other end of a pipe, and a gateway behind it that the test plays.

import { modernEra } from '../../src/downstream/modern/modern-session.js';
import type {
  ClientFacts,
  DownstreamClient,
  Exchange,
  GatewayPort,
  GatewaySeals,
  InputRequest,
  ListCaching,
} from '../../src/downstream/port.js';
import { ClientPipe } from '../../src/downstream/stdio/stdio-transport.js';
import { toBytes } from '../../src/wire/json/json-text.js';
import type { RpcError } from '../../src/wire/jsonrpc/message.js';
import { EnvelopeRequest } from '../../src/wire/mcp/relayed-request.js';
import { FakeClock } from './fake-clock.js';
import { hmac } from './hmac.js';
import { type Message, RecordingSink, requestOf, responseOf, scan } from './wire.js';

export const REVISION = '2026-07-28';

const CAPABILITIES = { sampling: {}, roots: {}, elicitation: { form: {}, url: {} } };

/** A gateway that keeps each exchange for the test. */
export class PlayedGateway implements GatewayPort {
  readonly seals: GatewaySeals;
  readonly exchanges: Exchange[] = [];
  readonly clients: DownstreamClient[] = [];
  readonly facts: ClientFacts[] = [];
  /** The names of the clients whose servers get a notification, each with its method. */
  readonly notified: [unknown, string][] = [];
  closed = 0;
  caching: ListCaching = { isSettled: true, freshMs: Number.POSITIVE_INFINITY, isPublic: false };

  constructor(seals: GatewaySeals = { lasting: hmac, run: (text) => hmac(`run ${text}`), instance: 'aaaaaaaaaa' }) {
    this.seals = seals;
  }

  open(client: DownstreamClient, facts: ClientFacts): ReturnType<GatewayPort['open']> {
    this.clients.push(client);
    this.facts.push(facts);
    return {
      offered: [],
      instructions: '',
      caching: () => this.caching,
      mirroredParams: () => [],
      handshake: () => undefined,
      serve: (exchange) => this.exchanges.push(exchange),
      watchTask: () => () => {},
      notified: ({ method }) => {
        this.notified.push([facts.profile.clientInfo.name, method]);
      },
      close: () => {
        this.closed += 1;
      },
    };
  }

  describe(): ReturnType<GatewayPort['describe']> {
    return { offered: [{ tools: {}, extensions: { 'x/y': {} } }], instructions: 'Be kind.' };
  }

  get last(): Exchange {
    const exchange = this.exchanges.at(-1);
    if (exchange === undefined) throw new Error('Nothing was served');
    return exchange;
  }
}

export interface PeerOptions {
  readonly clock?: FakeClock;
  readonly gateway?: PlayedGateway;
  readonly principal?: string;
  /** Shares suspended calls with another peer. */
  readonly era?: ReturnType<typeof modernEra>;
  readonly capabilities?: Message;
}

export class ModernPeer {
  readonly clock: FakeClock;
  readonly gateway: PlayedGateway;
  readonly received = new RecordingSink();
  readonly era: ReturnType<typeof modernEra>;
  readonly pipe: ClientPipe;
  readonly #capabilities: Message;
  #nextId = 1;

  constructor(options: PeerOptions = {}) {
    const { clock = new FakeClock(), gateway = new PlayedGateway(), principal = 'somebody' } = options;
    this.clock = clock;
    this.gateway = gateway;
    this.#capabilities = options.capabilities ?? CAPABILITIES;
    const serverInfo = { name: 'trunkline', version: '1.2.3' };
    this.era = options.era ?? modernEra({ clock, scan, gateway, serverInfo });
    this.pipe = new ClientPipe({ scan, chooseEra: () => this.era, sink: this.received, principal });
  }

  /** Sends a request, and returns its id. */
  request(method: string, params: Message = {}, meta: Message = {}): number {
    const id = this.#nextId;
    this.#nextId += 1;
    const { _meta, ...rest } = params;
    this.send({ jsonrpc: '2.0', id, method, params: { ...rest, _meta: { ...this.meta, ..._meta, ...meta } } });
    return id;
  }

  get meta(): Message {
    return {
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientInfo': { name: 'peer', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': this.#capabilities,
    };
  }

  call(params: Message = {}, meta: Message = {}): number {
    return this.request('tools/call', { name: 'ask', arguments: { n: 1 }, ...params }, meta);
  }

  send(message: Message): void {
    this.pipe.receive(Buffer.from(JSON.stringify(message)));
  }

  /** The answer to a request, if there is one. */
  answerTo(id: number): Message | undefined {
    return this.received.messages.find((message) => message.id === id);
  }
}

/** Input that a server asked for, and the answers. */
export class Asked {
  readonly answers: Message[] = [];
  readonly errors: RpcError[] = [];
  readonly input: InputRequest;

  constructor(method: string, params: Message = {}) {
    this.input = {
      request: new EnvelopeRequest(requestOf({ jsonrpc: '2.0', id: 7, method, params })),
      edits: [],
      answer: ({ bytes, result }) =>
        this.answers.push(JSON.parse(Buffer.from(bytes.slice(result?.start, result?.end)).toString())),
      fail: (error) => this.errors.push(error),
      progress: () => {},
    };
  }

  /** Number of answers of any kind. */
  get settled(): number {
    return this.answers.length + this.errors.length;
  }
}

export function elicitation(message = 'Who?'): Asked {
  return new Asked('elicitation/create', { message, requestedSchema: { type: 'object', properties: {} } });
}

/** A server's response with this result. */
export function resultOf(result: Message): ReturnType<typeof responseOf> {
  return responseOf({ jsonrpc: '2.0', id: 99, result });
}

export const DONE = toBytes('{"content":[]}');
