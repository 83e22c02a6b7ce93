import type { OnInternalError } from '../../errors/internal-error.js';
import type { LineDecoderOptions } from '../../io/line-decoder.js';
import type { FloodBound } from '../../io/streams/flood-bound.js';
import type { SplicedMessage } from '../../json/splice.js';
import type { TrackedSink } from '../../jsonrpc/message.js';
import type { NotificationEnvelope, Rejection, ScanEnvelope } from '../../mcp/envelope.js';
import type { Clock } from '../../timing/clock.js';
import type { HealthEvents } from '../health/health-monitor.js';
import type { ServerRequest } from '../port.js';

/** Why a line of a server is no message. */
export type JunkReason = Rejection['reason'] | 'result-not-an-object' | 'too-large' | 'memory-limit';

export interface BridgeEvents extends HealthEvents {
  /** The server sends a request. */
  request(request: ServerRequest): void;
  /** The server sends a notification other than progress, which the bridge delivers itself. */
  notification(notification: NotificationEnvelope): void;
  /** The server writes a line that is no message. It belongs in the server's log only. */
  junk(line: Uint8Array, reason: JunkReason): void;
  /** A handler threw. The error affects only the message that it was called for. Without a listener it is thrown on. */
  readonly fault?: OnInternalError;
}

export interface BridgeOptions extends Pick<LineDecoderOptions, 'unfinishedLines' | 'bufferPool'> {
  readonly clock: Clock;
  readonly scan: ScanEnvelope;
  /** The server's stdin. */
  readonly output: TrackedSink;
  readonly events: BridgeEvents;
  /** The longest line that the server may write, in bytes. */
  readonly maxFrameBytes: number;
  /** Requests fail as `overloaded` while more bytes than this wait for the server to read them. */
  readonly maxUnwrittenBytes: number;
  /** Whether Trunkline reads nothing from the server at the moment. */
  readonly isPaused?: () => boolean;
  /** Tells how long the server was not read because it floods the gateway. */
  readonly flood?: Pick<FloodBound, 'pausedMs'>;
  readonly tap?: MessageTap;
}

/** Sees each line in both directions while it is on. */
export interface MessageTap {
  isOn(): boolean;
  relayed(direction: 'to-server' | 'from-server', message: SplicedMessage): void;
}
