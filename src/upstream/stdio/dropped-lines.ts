import type { DroppedLineSink, OversizedLine } from '../../io/line-decoder.js';
import type { EvictionReason } from '../../io/unfinished-lines.js';
import type { HealthMonitor } from '../health/health-monitor.js';
import type { DropCounters, RequestFailure } from '../port.js';
import type { OutgoingRequests } from './outgoing-requests.js';
import type { WorkMeter } from './work-meter.js';

export interface DroppedLinesOptions {
  readonly counters: DropCounters;
  readonly outgoing: OutgoingRequests;
  readonly health: HealthMonitor;
  readonly meter: Pick<WorkMeter, 'line'>;
  /** Receives the beginning of each dropped line, for the log of the server. */
  readonly log: (head: Uint8Array, reason: 'too-large' | EvictionReason) => void;
  /** Whether Trunkline reads nothing from the server at the moment. */
  readonly isPaused: () => boolean;
}

/** What follows from a line of a server that was dropped: its request fails, and the server has violated the protocol. */
export class DroppedLines implements DroppedLineSink {
  readonly #options: DroppedLinesOptions;

  constructor(options: DroppedLinesOptions) {
    this.#options = options;
  }

  evicted(head: Uint8Array, reason: EvictionReason): void {
    const { counters, outgoing, health, log, isPaused } = this.#options;
    counters[reason === 'memory-limit' ? 'evicted' : 'stalled'] += 1;
    log(head, reason);
    outgoing.fail(findIdInBeginning(head), FAILURES[reason]);
    // A server that Trunkline does not read cannot finish its line.
    if (!isPaused()) health.brokenFrame();
  }

  oversized(line: OversizedLine): void {
    const { counters, outgoing, health, meter, log } = this.#options;
    meter.line(line.byteLength, false);
    if (line.evicted !== undefined) {
      // It is counted already, but perhaps only its end shows the id.
      outgoing.fail(findIdInFragments(line), FAILURES[line.evicted]);
      return;
    }
    counters.oversized += 1;
    log(line.head, 'too-large');
    outgoing.fail(findIdInFragments(line), 'response_too_large');
    health.brokenFrame();
  }
}

const FAILURES: Readonly<Record<EvictionReason, RequestFailure>> = {
  'memory-limit': 'response_dropped',
  'line-timeout': 'response_unfinished',
};

/**
 * The id of the request that a dropped line answers, if the beginning or the end of the line shows it.
 *
 * In practice an answer starts or ends with its id, and its payload is the only other member. No string at the end of
 * the line can look like an id, because a quote inside a string is escaped.
 */
export function findIdInFragments({ head, tail }: Pick<OversizedLine, 'head' | 'tail'>): number | undefined {
  const first = findIdInBeginning(head);
  if (first !== undefined) return first;
  if (!PAYLOAD_FIRST.test(withoutGaps(head))) return undefined;
  const last = ID_LAST.exec(withoutGaps(tail));
  return last === null ? undefined : Number(last[1]);
}

/** The id of the request that an unfinished line answers, if the line begins with it. */
function findIdInBeginning(head: Uint8Array): number | undefined {
  const first = ID_FIRST.exec(withoutGaps(head));
  return first === null ? undefined : Number(first[1]);
}

const LATIN1 = new TextDecoder('latin1');

/** Removes white space, even inside strings, where the patterns do not match anyway. */
function withoutGaps(bytes: Uint8Array): string {
  return LATIN1.decode(bytes).replace(/[ \t\r]+/g, '');
}

const ID_FIRST = /^\{(?:"jsonrpc":"2\.0",)?"id":(\d{1,16}),"(?:result|error)":/;
const PAYLOAD_FIRST = /^\{(?:"jsonrpc":"2\.0",)?"(?:result|error)":/;
const ID_LAST = /,"id":(\d{1,16})(?:,"jsonrpc":"2\.0")?\}$/;
