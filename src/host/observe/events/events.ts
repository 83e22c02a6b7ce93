import type { ChildSnapshot } from '../../../spec/server-state.js';

/**
 * Events of the gateway that are logged, counted, shown or recorded.
 *
 * Events hold no secrets: no arguments or results of calls, no tokens and no session ids. Messages themselves are no events
 * (`io/message-feed.ts`). Durations are milliseconds. `server` is a key of the configuration and `instance` names one
 * process of that server.
 */
export type GatewayEvent =
  | CallEvent
  | ServerEvent
  | SessionEvent
  | HttpEvent
  | ClusterEvent
  /** The configuration file was read again, and was accepted or refused. */
  | { readonly kind: 'config.read' }
  /** The event loop was held for more than `HELD_MS`. `ms` is the longest delay of the last minute. */
  | { readonly kind: 'loop.held'; readonly ms: number }
  /** An error in Trunkline itself. It failed one request and nothing else. */
  | { readonly kind: 'internal.error'; readonly error: unknown };

/** Delay of the event loop that users notice, in milliseconds, because all calls wait meanwhile. */
export const HELD_MS = 500;

export type CallEvent =
  | {
      readonly kind: 'attempt.started';
      readonly server: string;
      readonly instance: string;
      readonly generation: number;
      readonly method: string;
      /** Whether an earlier process has seen the call. */
      readonly isRepeated: boolean;
    }
  | {
      readonly kind: 'attempt.ended';
      readonly server: string;
      readonly instance: string;
      readonly generation: number;
      readonly method: string;
      /** `error` is an answer that says so: a JSON-RPC error or a tool result with `isError`. */
      readonly outcome: 'answered' | 'error' | 'failed' | 'cancelled';
      readonly durationMs: number;
    }
  /** The gateway answered a call instead of the server. */
  | {
      readonly kind: 'call.failed';
      readonly server: string;
      readonly instance: string;
      readonly method: string;
      readonly reason: string;
      /** Whether a byte of the call may have reached the server. */
      readonly sent: boolean;
    };

export type ServerEvent =
  /** The supervisor moved a server to another state, or learned something about it. Emitted in the tick of the cause. */
  | { readonly kind: 'server.changed'; readonly instance: string; readonly snapshot: ChildSnapshot }
  /** The tokens of a login were renewed, or could not be. */
  | { readonly kind: 'login.renewed'; readonly server: string; readonly result: 'ok' | 'refused' | 'failed' }
  /** A server ended and left `count` processes outside of its process group, which Trunkline ended. */
  | { readonly kind: 'server.left-processes'; readonly server: string; readonly count: number }
  /** The lists of some clients were merged again. `only` is the key of the server if they see a single one unchanged. */
  | { readonly kind: 'lists.merged'; readonly tools: number; readonly only: string | undefined };

export type SessionEvent =
  /** A client has opened a session. */
  ({ readonly kind: 'client.connected' } & ClientOfSession) | ({ readonly kind: 'client.left' } & ClientOfSession);

interface ClientOfSession {
  /** Name that the client gave itself. */
  readonly name: string;
  readonly version: string;
  /** The user, or the machine with a token of its own. Both are absent if the gateway does not know the users of its clients. */
  readonly user?: string;
  readonly machine?: string;
  /** The number of open sessions. */
  readonly clients: number;
  /** The name of the client's view in the configuration, if it has one, and the reason why that view shows nothing. */
  readonly view?: string | undefined;
  readonly fault?: string | undefined;
}

/** A name for which a request was refused, because it is not allowed. */
export interface RefusedName {
  readonly header: 'Host' | 'Origin';
  /** A name of a host or an origin, of at most 100 characters; otherwise a remark that says what was sent in its place. */
  readonly name: string;
}

export type HttpEvent =
  | { readonly kind: 'http.listening'; readonly url: string }
  | {
      readonly kind: 'http.refused';
      readonly status: number;
      readonly message: string;
      readonly method: string;
      readonly address: string;
      readonly named?: RefusedName;
      /** The user, or the machine, whose token was accepted. */
      readonly user?: string;
      readonly machine?: string;
    }
  /** The gateway finishes what is in flight, within `ms`, and then ends. */
  | { readonly kind: 'http.draining'; readonly ms: number }
  | { readonly kind: 'http.session-opened'; readonly sessions: number }
  /** A session was resumed that was idle, or that another process or an earlier run has served before. */
  | { readonly kind: 'http.session-resumed'; readonly sessions: number }
  | { readonly kind: 'http.session-ended'; readonly reason: string; readonly sessions: number }
  /** The stream of a client that does not read was cut. The client can resume the stream. */
  | { readonly kind: 'http.stream-cut'; readonly unwrittenBytes: number }
  | { readonly kind: 'http.connection-refused'; readonly address: string }
  | { readonly kind: 'http.connection-evicted'; readonly address: string }
  /** The bytes were not HTTP, or came too slowly. */
  | { readonly kind: 'http.connection-failed'; readonly code: string; readonly address: string };

/** Event of a gateway that serves with others. */
export type ClusterEvent =
  /** Another gateway joined or left, or does not answer, or answers again. `members` includes that one and this one. */
  | {
      readonly kind: 'cluster.member';
      readonly instance: string;
      readonly address: string | undefined;
      readonly change: 'joined' | 'left' | 'unreachable' | 'reachable';
      readonly members: number;
    }
  /** The store has the heartbeat of a gateway with another key. */
  | { readonly kind: 'cluster.stranger' }
  | { readonly kind: 'cluster.store'; readonly isUp: boolean; readonly reason?: string }
  /** Clients were ended, because other gateways serve their users and sessions now. */
  | { readonly kind: 'cluster.fenced'; readonly clients: number }
  /** A request could not be passed to another gateway, and was served elsewhere. */
  | { readonly kind: 'cluster.unsent'; readonly instance: string; readonly reason: string };

type Kind = GatewayEvent['kind'];
type EventOf<K extends Kind> = Extract<GatewayEvent, { readonly kind: K }>;
type Listener = (event: GatewayEvent) => void;

/** Takes the events that parts of the gateway report. Check `wants` before building an event on the path of a call. */
export interface EventSink {
  /** Whether events of this kind have a subscriber. */
  wants(kind: Kind): boolean;
  emit(event: GatewayEvent): void;
}

export interface EventSource {
  /** Calls `listener` for each event of this kind, in the tick in which it happens. Returns the function that unsubscribes. */
  subscribe<K extends Kind>(kind: K, listener: (event: EventOf<K>) => void): () => void;
}

/**
 * Carries the events of the gateway to their subscribers, such as the log and the status.
 *
 * If a listener throws, the other listeners still get the event. The error is an internal error, which is an event as well.
 */
export class EventBus implements EventSink, EventSource {
  readonly #listeners = new Map<Kind, readonly Listener[]>();

  wants(kind: Kind): boolean {
    return this.#listeners.has(kind);
  }

  subscribe<K extends Kind>(kind: K, listener: (event: EventOf<K>) => void): () => void {
    // Only events of this kind reach it.
    const added = (event: GatewayEvent) => listener(event as EventOf<K>);
    this.#listeners.set(kind, [...(this.#listeners.get(kind) ?? []), added]);
    return () => {
      const left = (this.#listeners.get(kind) ?? []).filter((each) => each !== added);
      if (left.length === 0) this.#listeners.delete(kind);
      else this.#listeners.set(kind, left);
    };
  }

  emit(event: GatewayEvent): void {
    for (const listener of this.#listeners.get(event.kind) ?? []) {
      try {
        listener(event);
      } catch (error) {
        // A listener to internal errors that throws would be told of its own errors forever.
        if (event.kind !== 'internal.error') this.emit({ kind: 'internal.error', error });
      }
    }
  }
}

/** A sink without subscribers. */
export const NO_EVENTS: EventSink = { wants: () => false, emit: () => {} };
