// One server that the test plays, connected to a real `StdioBridge` in memory.
import { copyInto } from '../../src/io/byte-reader.js';
import type { Clock } from '../../src/timing/clock.js';
import { legacyDialect } from '../../src/upstream/legacy/legacy-dialect.js';
import type { UpstreamConnection, UpstreamListener } from '../../src/upstream/port.js';
import { StdioBridge } from '../../src/upstream/stdio/stdio-bridge.js';
import { SILENT_LISTENER } from './in-memory-upstream.js';
import { type PeerScript, ScriptedPeer } from './scripted-peer.js';
import { lineOf, type Message, scan } from './wire.js';

export interface ScriptedChildOptions extends PeerScript {
  readonly clock: Clock;
  /** Called when the bridge finds the server silent. */
  readonly silent?: () => void;
}

/** A scripted server at the other end of a real bridge, for tests in which the bridge takes part. */
export class ScriptedChild extends ScriptedPeer {
  readonly bridge: StdioBridge;
  #listener = SILENT_LISTENER;
  #connection: UpstreamConnection | undefined;

  constructor({ clock, silent = () => {}, ...script }: ScriptedChildOptions) {
    super(script);
    this.bridge = new StdioBridge({
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
  }

  override async connect(generation = 1, listener: Partial<UpstreamListener> = {}): Promise<UpstreamConnection> {
    this.#listener = { ...SILENT_LISTENER, ...listener };
    const profile = { clientInfo: { name: 'trunkline', version: '0' }, capabilities: {} };
    const outcome = await legacyDialect.open(this.bridge, { generation, profile, timeoutMs: 60_000 });
    if (outcome.kind === 'failed') throw new Error(outcome.reason);
    this.#connection = outcome.connection;
    return outcome.connection;
  }

  override get connection(): UpstreamConnection {
    if (this.#connection === undefined) throw new Error('Nobody has connected');
    return this.#connection;
  }

  override say(...messages: (Message | string)[]): void {
    for (const message of messages) copyInto(this.bridge, lineOf(message));
  }
}
