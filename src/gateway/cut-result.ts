import {
  isObject,
  isString,
  OPEN_BRACKET,
  readString,
  readText,
  type Span,
  stringAt,
  toBytes,
  visitElements,
  visitMembers,
} from '../json/json-text.js';
import { boundaryAfter, boundaryBefore, insideOf, textLength } from '../json/literal-text.js';
import type { Edit } from '../json/splice.js';
import { join } from '../jsonrpc/message.js';

export interface CutOptions {
  /** Limit of all texts of the result together, and of the structured content, in bytes. */
  readonly maxBytes: number;
  /** Whether the structured content must stay as it is, because the tool has an output schema. */
  readonly isStructureFixed: () => boolean;
  /** Name of the resource link to the whole. Absent if the client's revision has no resource links. */
  readonly linkName: string | undefined;
  /**
   * Keeps the whole: the inside of a string literal, whose text has `length` bytes. Returns the URI under which the client can
   * read it, or `undefined` if it is too large to be kept.
   */
  readonly keep: (inside: Uint8Array, length: number) => string | undefined;
}

/** Excess of a text over the limit that is not worth a note, because the note would be as long. */
const WORTHWHILE_BYTES = 512;

const NO_EDITS: readonly Edit[] = [];
const NOTHING = new Uint8Array(0);
const LINE_BREAK = toBytes('\\n');

/**
 * Returns the edits that shorten the texts of a tool result, if they are too long together: the first and the last bytes stay,
 * a note replaces the others, and a resource link is added at the end. Blocks whose text is left out as a whole are removed.
 * Structured content that is too long becomes a note. Images, audio and binary resources stay.
 */
export function cutResult(bytes: Uint8Array, result: Span, options: CutOptions): readonly Edit[] {
  const { maxBytes, isStructureFixed, linkName, keep } = options;
  if (result.end - result.start <= maxBytes) return NO_EDITS;
  const member = membersOf(bytes, result);
  const blocks = blocksOf(bytes, member('content'));
  if (blocks === undefined) return NO_EDITS;
  const texts = blocks.texts.map(({ inside }) => bytes.subarray(inside.start, inside.end));
  const lengths = texts.map(textLength);
  const isLong = sum(lengths) > maxBytes + WORTHWHILE_BYTES;
  const structure = member('structuredContent');
  const isLarge = structure !== undefined && structure.end - structure.start > maxBytes;
  const leavesStructure = isLarge && !isStructureFixed();
  if (!isLong && !leavesStructure) return NO_EDITS;

  const ofStructure = leavesStructure ? insideOf(readText(bytes, structure)) : undefined;
  const parts = ofStructure === undefined ? texts : [...texts, ofStructure];
  const structureAt = lengthBefore(lengths, texts.length);
  const length = ofStructure === undefined ? structureAt - 1 : structureAt + textLength(ofStructure);
  const [only = NOTHING, ...more] = parts;
  // A copy, because the memory of the answer is used again.
  const uri = keep(
    more.length === 0 ? only.slice() : join([only, ...more.flatMap((part) => [LINE_BREAK, part])]),
    length,
  );
  if (uri === undefined) return NO_EDITS;
  const note = (what: string, from: number, to: number) =>
    `[Trunkline left out ${what} here: bytes ${from} to ${to} of ${length}. To read them, call trunkline__read_result with uri "${uri}" and offset ${from}.]`;
  const noteOn = (from: number, to: number) => note('a part of the text', from, to);
  const edits = isLong ? cutTexts(blocks, { texts, lengths }, maxBytes, noteOn) : [];
  if (leavesStructure) {
    const text = note('the structured content', structureAt, length);
    edits.push({ span: structure, text: toBytes(JSON.stringify({ trunkline: text })) });
  }
  if (linkName !== undefined) edits.push(linkEdit(blocks, { uri, name: linkName, size: length }));
  return edits;
}

interface Blocks {
  readonly content: Span;
  readonly elements: readonly Span[];
  readonly texts: readonly TextPart[];
}

interface TextPart {
  /** Index of the block with the text. */
  readonly block: number;
  /** The literal without its quotes. */
  readonly inside: Span;
}

/** The content blocks of a result; `undefined` if it has no list of them. */
function blocksOf(bytes: Uint8Array, content: Span | undefined): Blocks | undefined {
  if (content === undefined || bytes[content.start] !== OPEN_BRACKET) return undefined;
  const elements: Span[] = [];
  const texts: TextPart[] = [];
  visitElements(bytes, content.start, Number.POSITIVE_INFINITY, (element) => {
    const text = textOf(bytes, element);
    if (text !== undefined && isString(bytes, text))
      texts.push({ block: elements.length, inside: { start: text.start + 1, end: text.end - 1 } });
    elements.push(element);
  });
  return { content, elements, texts };
}

/** The text of a block of text, or of an embedded resource. */
function textOf(bytes: Uint8Array, block: Span): Span | undefined {
  if (!isObject(bytes, block)) return undefined;
  const member = membersOf(bytes, block);
  const type = stringAt(bytes, member('type'));
  if (type === 'text') return member('text');
  const resource = type === 'resource' ? member('resource') : undefined;
  return resource && isObject(bytes, resource) ? membersOf(bytes, resource)('text') : undefined;
}

/** Returns a function that finds a member by its name, if it is there once. Readers differ in which of several they take. */
function membersOf(bytes: Uint8Array, object: Span): (name: string) => Span | undefined {
  const members: { readonly name: string; readonly value: Span }[] = [];
  visitMembers(bytes, object.start, Number.POSITIVE_INFINITY, (key, value) => {
    members.push({ name: readString(bytes, key), value });
  });
  return (name) => {
    const [first, ...others] = members.filter((member) => member.name === name);
    return others.length === 0 ? first?.value : undefined;
  };
}

/**
 * Edits that keep the first and the last bytes of all texts, which are too long together. `noteOn` describes the bytes that are
 * left out.
 */
function cutTexts(
  blocks: Blocks,
  { texts, lengths }: { readonly texts: readonly Uint8Array[]; readonly lengths: readonly number[] },
  maxBytes: number,
  noteOn: (from: number, to: number) => string,
): Edit[] {
  const { elements } = blocks;
  const textAt = (index: number) => texts[index] ?? NOTHING;
  // In the message, a text has at least as many bytes as in UTF-8, so the kept bytes are within the limit.
  let room = Math.floor(maxBytes / 2);
  let first = 0;
  for (; first < texts.length - 1 && textAt(first).length <= room; first += 1) room -= textAt(first).length;
  const headEnd = boundaryBefore(textAt(first), room);
  room = Math.floor(maxBytes / 2);
  let last = texts.length - 1;
  for (; last > first && textAt(last).length <= room; last -= 1) room -= textAt(last).length;
  const tailStart = boundaryAfter(textAt(last), Math.max(0, textAt(last).length - room));

  const from = lengthBefore(lengths, first) + textLength(textAt(first).subarray(0, headEnd));
  const to = lengthBefore(lengths, last + 1) - 1 - textLength(textAt(last).subarray(tailStart));
  const note = `${headEnd === 0 ? '' : '\n\n'}${noteOn(from, to)}`;
  const edits: Edit[] = [];
  blocks.texts.slice(first, last + 1).forEach(({ block, inside: { start, end } }, at) => {
    const isFirst = at === 0;
    const isLast = first + at === last;
    const hasTail = isLast && tailStart < textAt(last).length;
    const text = isFirst ? insideOf(hasTail ? `${note}\n\n` : note) : NOTHING;
    const span = { start: isFirst ? start + headEnd : start, end: hasTail ? start + tailStart : end };
    if (isFirst || hasTail) edits.push({ span, text });
    // A block of an earlier text, which stays, comes before.
    else edits.push({ span: { start: elements[block - 1]?.end ?? start, end: elements[block]?.end ?? end }, text });
  });
  return edits;
}

function linkEdit(
  { content, elements }: Blocks,
  link: { readonly uri: string; readonly name: string; readonly size: number },
): Edit {
  const block = { type: 'resource_link', ...link, mimeType: 'text/plain' };
  const at = content.end - 1;
  const comma = elements.length === 0 ? '' : ',';
  return { span: { start: at, end: at }, text: toBytes(`${comma}${JSON.stringify(block)}`) };
}

/** Length of this many texts, each with a line break behind it. */
function lengthBefore(lengths: readonly number[], count: number): number {
  return sum(lengths.slice(0, count)) + count;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
