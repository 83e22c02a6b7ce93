import type { ResponseEnvelope } from '../../wire/mcp/envelope.js';
import { type DiscoverResult, offeredRevision, readDiscoverResult } from '../../wire/mcp/handshake.js';
import { METHODS } from '../../wire/mcp/methods.js';
import type { Outcome } from '../../wire/mcp/outcome.js';
import { ownRequest } from '../../wire/mcp/relayed-request.js';
import { MODERN_REVISIONS, type ModernRevision } from '../../wire/mcp/revisions.js';
import { type Channel, type Dialect, failedDial, type OpenOptions } from '../dialect.js';
import type { DialOutcome, SentRequest } from '../upstream-connection.js';
import type { ModernOptions } from './modern-connection.js';
import { modernMessage, RequestMeta } from './modern-messages.js';

export interface EraDialectOptions extends ModernOptions {
  /** The legacy dialect. Its outcome includes the server's own version. */
  readonly legacy: { open(...args: Parameters<Dialect['open']>): Promise<LegacyOutcome> };
}

type LegacyOutcome = DialOutcome & { readonly version?: string | undefined };

/** Longest wait for the answer to the probe before `initialize` is sent as well, in milliseconds. */
const SILENCE_MS = 3_000;

type Discovery =
  | { readonly kind: 'modern'; readonly revision: ModernRevision; readonly result: DiscoverResult }
  /** The server is not modern, or has no revision in common with Trunkline. */
  | { readonly kind: 'other'; readonly reason: string }
  | ReturnType<typeof failedDial>;

/**
 * Finds the era of a server, and opens the connection in this era.
 *
 * The probe is a `server/discover` request. A server that does not answer it like a modern server is legacy, and gets
 * `initialize` over the same connection. A silent server may only be slow to start, so it gets `initialize` before it answers
 * the probe, and its answers decide. A failure of the network or of the credentials decides nothing. See page
 * basic/versioning of revision 2026-07-28 of the MCP specification.
 */
export class EraDialect implements Dialect {
  readonly #options: EraDialectOptions;

  constructor(options: EraDialectOptions) {
    this.#options = options;
  }

  async open(channel: Channel, options: OpenOptions): Promise<DialOutcome> {
    const { era } = options;
    const known = era.begin();
    if (known === 'modern') {
      const discovery = await this.#discover(channel, options).outcome;
      if (discovery.kind === 'modern') return await this.#openModern(channel, options, discovery);
      // The start fails, because a wrong configuration must be seen. The next start asks for the era, unless it is configured.
      if (discovery.kind === 'other') era.forget();
      return { ...discovery, kind: 'failed', isRefused: true };
    }
    if (known === undefined) return await this.#probe(channel, options);
    const outcome = await this.#options.legacy.open(channel, options);
    if (outcome.kind === 'failed' && outcome.isRefused === true && !era.isFixed && !channel.isClosed) {
      // The server has changed since the verdict, or an earlier start failed before it answered the probe.
      const { outcome: asked } = this.#discover(channel, options);
      const discovery = await this.#orSilence(asked, options);
      if (discovery?.kind === 'modern') return await this.#openModern(channel, options, discovery);
    }
    return this.#openedLegacy(options, outcome);
  }

  async #probe(channel: Channel, options: OpenOptions): Promise<DialOutcome> {
    const { legacy } = this.#options;
    options.era.probing();
    const { outcome, withdraw } = this.#discover(channel, options);
    let latest: Discovery | undefined;
    void outcome.then((discovery) => {
      latest = discovery;
    });
    const discovered = () => latest;
    if ((await this.#orSilence(outcome, options)) === undefined) {
      const behind = await legacy.open(channel, options);
      // The server got the probe first, so its answer comes soon.
      if (behind.kind === 'failed' && behind.isRefused === true) await this.#orSilence(outcome, options);
      const late = discovered();
      if (behind.kind === 'open' || late?.kind !== 'modern') {
        withdraw();
        // The process already negotiated the other era. The next process starts with the era that it reported too late.
        return this.#openedLegacy(options, behind, late?.kind === 'modern' ? late : undefined);
      }
    }
    const known = await outcome;
    if (known.kind === 'modern') return await this.#openModern(channel, options, known);
    // Some servers answer HTTP 500 to methods that they do not know. This decides nothing, so no verdict is kept.
    if (known.kind === 'failed') return known.fault === 'trouble' ? await legacy.open(channel, options) : known;
    return this.#openedLegacy(options, await legacy.open(channel, options));
  }

  #openedLegacy(
    { era }: OpenOptions,
    outcome: LegacyOutcome,
    late?: Extract<Discovery, { kind: 'modern' }>,
  ): DialOutcome {
    if (outcome.kind !== 'open') return outcome;
    if (late === undefined) era.opened({ era: 'legacy', version: outcome.version });
    else era.opened({ era: 'modern', version: late.result.asInitialize.version });
    return outcome;
  }

  async #openModern(
    channel: Channel,
    options: OpenOptions,
    { revision, result }: Extract<Discovery, { kind: 'modern' }>,
  ): Promise<DialOutcome> {
    // Few servers need this code, so it is loaded late.
    const { ModernConnection } = await import('./modern-connection.js');
    options.era.opened({ era: 'modern', version: result.asInitialize.version });
    const connection = new ModernConnection({ ...this.#options, ...options, channel, revision, discovered: result });
    return { kind: 'open', connection };
  }

  /** Resolves as the promise, or with `undefined` after `SILENCE_MS` or half of the start timeout, whichever is shorter. */
  #orSilence<T>(promise: Promise<T>, { timeoutMs }: OpenOptions): Promise<T | undefined> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.schedule(Math.min(SILENCE_MS, timeoutMs / 2), () => resolve(undefined));
      void promise.then((value) => {
        cancel();
        resolve(value);
      });
    });
  }

  #discover(
    channel: Channel,
    options: OpenOptions,
    revision: ModernRevision = MODERN_REVISIONS[0],
    isSecond = false,
  ): { readonly outcome: Promise<Discovery>; readonly withdraw: () => void } {
    const { profile, timeoutMs } = options;
    let sent: SentRequest | undefined;
    const outcome = new Promise<Outcome>((settle) => {
      const request = modernMessage(ownRequest(METHODS.discover), new RequestMeta(profile, revision));
      const timeouts = { idleMs: timeoutMs, maxMs: timeoutMs };
      sent = channel.send(request, [], timeouts, { settle, takesErrorWithoutId: true });
    }).then((answer) => {
      const offered = answer.kind === 'answered' ? offeredRevision(answer.response) : undefined;
      if (offered !== undefined && !isSecond) return this.#discover(channel, options, offered, true).outcome;
      return toDiscovery(answer);
    });
    return { outcome, withdraw: () => sent?.cancel() };
  }
}

function toDiscovery(outcome: Outcome): Discovery {
  if (outcome.kind === 'failed') {
    const failure = failedDial(METHODS.discover, outcome);
    const isUndecided = outcome.reason === 'exited' || outcome.reason === 'stopped' || failure.fault !== undefined;
    return isUndecided ? failure : { kind: 'other', reason: failure.reason };
  }
  const result = readDiscoverResult(outcome.response);
  if (result?.revision !== undefined) return { kind: 'modern', revision: result.revision, result };
  return { kind: 'other', reason: `${METHODS.discover}: ${whyNot(outcome.response, result)}` };
}

function whyNot({ error }: ResponseEnvelope, result: DiscoverResult | undefined): string {
  if (error !== undefined) return 'the server answered with an error, so it speaks no revision without a handshake';
  return result === undefined ? 'the result is not valid' : 'the server supports no revision that is known here';
}
