import { isUtf8 } from 'node:buffer';
import { canonicalObject } from '../../wire/json/edit-members.js';
import { readText, type Span, toBytes } from '../../wire/json/json-text.js';
import { parseJson } from '../../wire/json/json-value.js';
import { splice } from '../../wire/json/splice.js';
import { createScan, type Envelope, messagesOf } from '../../wire/mcp/envelope.js';

const scan = createScan(isUtf8);

/** Returns the messages of one line: those of a batch, or one, or none if the text is no message. */
export function messagesIn(text: string): readonly Envelope[] {
  const scanned = scan(toBytes(text));
  if (scanned.kind !== 'rejected') return [scanned];
  return scanned.reason === 'batch'
    ? messagesOf(scanned, scan).flatMap((each) => (each.kind === 'rejected' ? [] : [each]))
    : [];
}

/** Returns the id as JSON, so that the number 1 and the string "1" differ. */
export function idOf({ bytes, id }: Envelope & { readonly id: Span }): string {
  return readText(bytes, id);
}

export function paramsOf(message: Exclude<Envelope, { kind: 'response' }>): unknown {
  return message.params && parseJson(readText(message.bytes, message.params));
}

export function answerOf({ bytes, result, error }: Extract<Envelope, { kind: 'response' }>): unknown {
  const read = (span: Span | undefined) => span && parseJson(readText(bytes, span));
  return error === undefined ? { result: read(result) } : { error: read(error) };
}

/** Returns the message with one of its tokens replaced. Everything else stays as it was recorded. */
export function replaceToken({ bytes, span }: Envelope, token: Span, text: string): string {
  return Buffer.from(splice({ bytes, span, edits: [{ span: token, text: toBytes(text) }] })).toString();
}

/**
 * Returns the same key for equal requests. It has the method, and the parameters without `_meta`, in which clients put
 * tokens and traces. The order of members does not count. Empty parameters equal absent ones.
 */
export function matchKey({ method, bytes, params }: Exclude<Envelope, { kind: 'response' }>): string {
  const text = params === undefined ? '{}' : canonicalObject(bytes, params, (name) => name !== '_meta');
  return text === '{}' ? method : `${method} ${text}`;
}

/** Whether `text` equals the recorded text, in which `redacted` stands for any secret. */
export function matchesRedacted(recorded: string, text: string, redacted: string): boolean {
  const [first = '', ...rest] = recorded.split(redacted);
  const last = rest.pop();
  if (last === undefined) return recorded === text;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  let position = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, position);
    if (found === -1) return false;
    position = found + piece.length;
  }
  return position <= text.length - last.length;
}
