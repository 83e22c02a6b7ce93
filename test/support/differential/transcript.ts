// Messages that both sides of a script received, in a form that can be compared between different ways.
import { elementsOf, replaceAt, tokenAt } from '../../fixtures/servers/odd/raw-json.mjs';
import { sha256 } from '../sha256.js';

/** Messages that one script made both sides hear, ready to be compared with those of another way. */
export interface Transcript {
  /** Messages at the server, in order. */
  readonly server: readonly string[];
  /** Messages at the client while it waited for the answer to a request, and the answers. */
  readonly asked: readonly string[];
  /** Other messages at the client. */
  readonly unasked: readonly string[];
  /** Both together in order, where one pipe carries them. Announcements are not in here: they are made at leisure. */
  readonly inOrder: readonly string[];
  /** The entries of the lists that the client has read. */
  readonly listed: readonly string[];
}

/**
 * Puts numbers in the place of the ids and progress tokens that a gateway has to replace, in the order in which they
 * appear. What has to come back as it was sent is left as it is: the ids of answers, and the tokens of progress.
 */
export class Numbering {
  readonly #numbers = new Map<string, number>();
  #last = 0;

  of(text: string): string {
    // A line break can only stand between tokens, where each way of framing has its own mind about it.
    const line = text
      .trim()
      .replace(/[\r\n]/g, ' ')
      .replace(SIGNATURE, '');
    const method = tokenAt(line, ['method']);
    if (method === undefined) return shortened(line);
    if (JSON.parse(method) === 'notifications/cancelled') {
      return shortened(replaceAt(line, ['params', 'requestId'], (token) => `<${this.#numbers.get(token)}>`));
    }
    const id = tokenAt(line, ['id']);
    if (id === undefined) return shortened(line);
    this.#last += 1;
    this.#numbers.set(id, this.#last);
    const numbered = replaceAt(line, ['id'], () => `<${this.#last}>`);
    return shortened(replaceAt(numbered, ['params', '_meta', 'progressToken'], () => `<token ${this.#last}>`));
  }
}

/** What a gateway puts before the words of a server that asks a person, and nothing else changes in them. */
const SIGNATURE = /Server \\"[^"\\]+\\" asks(?: you to open a page of [^ ]+)?: /g;

/** The entries that an answer lists, byte for byte, without the gateway's own. */
export function entriesOf(answer: string, member: string): string[] {
  const list = tokenAt(answer, ['result', member]);
  if (list === undefined) throw new Error(`No list of ${member}: ${answer}`);
  return elementsOf(list).filter((entry) => !(tokenAt(entry, ['name']) ?? '').startsWith('"trunkline__'));
}

/** The entry without the prefix before its name. */
export function underOwnName(entry: string, prefix: string): string {
  return prefix === '' ? entry : replaceAt(entry, ['name'], (name) => name.replace(prefix, ''));
}

/** No report of a difference should be megabytes long. */
function shortened(text: string): string {
  if (text.length <= MAX_SHOWN) return text;
  return `${text.slice(0, MAX_SHOWN / 2)}…${text.length} characters, SHA-256 ${sha256(text)}`;
}

const MAX_SHOWN = 8_192;
