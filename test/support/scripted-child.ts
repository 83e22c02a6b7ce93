// One server that the test plays, connected to a real `Bridge` in memory.

import { Bridge } from '../../src/upstream/channel/bridge.js';
import type { Dialect } from '../../src/upstream/dialect.js';
import { legacyDialect } from '../../src/upstream/legacy/legacy-dialect.js';
import { EraDialect } from '../../src/upstream/modern/era-dialect.js';
import { ServerEra } from '../../src/upstream/server-era.js';
import type { UpstreamConnection, UpstreamListener } from '../../src/upstream/upstream-connection.js';
import { type ByteReader, copyInto } from '../../src/wire/io/byte-reader.js';
import type { Clock } from '../../src/wire/timing/clock.js';
import { SILENT_LISTENER } from './in-memory-upstream.js';
import { type PeerScript, ScriptedPeer } from './scripted-peer.js';
import { lineOf, type Message, scan } from './wire.js';

export interface ScriptedChildOptions extends PeerScript {
  readonly clock: Clock;
  /** Capabilities of the clients, as the server is told. */
  readonly clientCapabilities?: Message;
  /** Called when the bridge finds the server silent. */
  readonly silent?: () => void;
}

/** A scripted server at the other end of a real bridge, for tests in which the bridge takes part. */
export class ScriptedChild extends ScriptedPeer {
  readonly bridge: Bridge;
  readonly #stdout: ByteReader;
  readonly #dialect: Dialect;
  /** Capabilities of the client of the handshake. */
  readonly #capabilities: Message;
  #listener = SILENT_LISTENER;
  #connection: UpstreamConnection | undefined;

  constructor({ clock, silent = () => {}, ...script }: ScriptedChildOptions) {
    super(script);
    const { isModern = false, clientCapabilities = {} } = script;
    const modern = new EraDialect({ legacy: legacyDialect, clock, mintId: () => 'minted' });
    this.#dialect = isModern ? modern : legacyDialect;
    this.#capabilities = clientCapabilities;
    this.bridge = new Bridge({
      clock,
      scan,
      output: this.received,
      maxFrameBytes: 1024 * 1024,
      maxUnwrittenBytes: 1024 * 1024,
      events: {
        request: (request) => this.#listener.request(request),
        notification: (notification) => this.#listener.notification(notification),
        junk: () => {},
        silent,
        violated: () => {},
      },
    });
    this.#stdout = this.bridge.open();
  }

  override async connect(generation = 1, listener: Partial<UpstreamListener> = {}): Promise<UpstreamConnection> {
    this.#listener = { ...SILENT_LISTENER, ...listener };
    const profile = { clientInfo: { name: 'trunkline', version: '0' }, capabilities: this.#capabilities };
    const options = { generation, profile, timeoutMs: 60_000, listener: this.#listener };
    const outcome = await this.#dialect.open(this.bridge, { ...options, era: new ServerEra('modern') });
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    this.#connection = outcome.connection;
    return outcome.connection;
  }

  override get connection(): UpstreamConnection {
    if (this.#connection === undefined) throw new Error('Nobody has connected');
    return this.#connection;
  }

  override say(...messages: (Message | string)[]): void {
    for (const message of messages) copyInto(this.#stdout, lineOf(message));
  }
}
