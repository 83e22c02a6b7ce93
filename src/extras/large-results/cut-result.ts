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
} from '../../wire/json/json-text.js';
import { boundaryAfter, boundaryBefore, insideOf, textInside, textLength } from '../../wire/json/literal-text.js';
import { concatEdits, type Edit } from '../../wire/json/splice.js';
import { join } from '../../wire/jsonrpc/message.js';
import { withContent } from '../../wire/mcp/older-revisions.js';

export interface CutOptions {
  /** Limit of all texts of the result together, and of the structured content, in bytes. */
  readonly maxBytes: number;
  /** Limit of all binary content of the result together, in bytes. */
  readonly maxBinaryBytes: number;
  /** Whether the structured content must stay as it is, because the tool has an output schema. */
  readonly isStructureFixed: () => boolean;
  /** The source of the result, for the names of resource links. */
  readonly source: string;
  /** Whether the client's revision has resource links. */
  readonly hasLinks: boolean;
  /** Returns the URI under which the client can read the content, or `undefined` if the content is too large to be kept. */
  readonly keep: (content: KeptContent) => string | undefined;
}

export interface KeptContent {
  /** A string literal without its quotes: the text, or bytes in Base64. */
  readonly inside: Uint8Array;
  /** Length of the text in UTF-8, or of the bytes. */
  readonly length: number;
  readonly isBinary: boolean;
  readonly mimeType?: string | undefined;
}

/** Excess of a text over the limit that is not worth a note, because the note would be as long. */
const WORTHWHILE_BYTES = 512;

const NO_EDITS: readonly Edit[] = [];
const NOTHING = new Uint8Array(0);
const LINE_BREAK = toBytes('\\n');

/**
 * Returns the edits that shorten the texts of a tool result, if they are too long together: the first and the last bytes stay, a note
 * replaces the others, and a resource link is added at the end. Blocks whose text is left out as a whole are removed. Structured content
 * that is too long becomes a note. Images, audio and binary resources that are too large together become links.
 */
export function cutResult(bytes: Uint8Array, result: Span, options: CutOptions): readonly Edit[] {
  const { maxBytes, maxBinaryBytes } = options;
  const size = result.end - result.start;
  if (size <= Math.min(maxBytes, maxBinaryBytes)) return NO_EDITS;
  const member = membersOf(bytes, result);
  const blocks = blocksOf(bytes, member('content'));
  if (blocks === undefined) return NO_EDITS;
  const links = size > maxBinaryBytes ? linkBinaries(bytes, blocks, options) : NO_EDITS;
  const cuts = size > maxBytes ? cutText(bytes, blocks, member('structuredContent'), options) : NO_EDITS;
  return concatEdits(links, cuts);
}

/** Edits that replace the binary content for which there is no room. */
function linkBinaries(
  bytes: Uint8Array,
  { elements, binaries }: Blocks,
  { maxBinaryBytes, source, hasLinks, keep }: CutOptions,
): Edit[] {
  let room = maxBinaryBytes;
  return binaries.flatMap(({ block, inside: { start, end }, kind, mimeType, uri: own }) => {
    const inside = bytes.subarray(start, end);
    const size = decodedLength(inside);
    if (size <= room) {
      room -= size;
      return [];
    }
    // A copy, because the memory of the answer is used again.
    const uri = keep({ inside: inside.slice(), length: size, isBinary: true, mimeType });
    const span = elements[block];
    if (uri === undefined || span === undefined) return [];
    const what = kind === 'resource' ? 'a binary resource' : kind === 'image' ? 'an image' : 'audio';
    const description = `Trunkline left out ${what} of ${size} bytes here. To get it, read the resource ${uri}.`;
    const link = { uri, name: own ?? `${kind} of ${source}`, description, mimeType, size };
    const text = hasLinks
      ? withContent(bytes, span, 'resource_link', JSON.stringify(link).slice(1, -1))
      : withContent(bytes, span, 'text', `"text":${JSON.stringify(`[${description}]`)}`);
    return [{ span, text }];
  });
}

/** Returns the number of bytes that a literal in Base64 encodes. */
function decodedLength(inside: Uint8Array): number {
  const end = textInside(inside.subarray(boundaryBefore(inside, Math.max(0, inside.length - ESCAPED_PADDING))));
  const padding = end.length - end.replace(/=+$/, '').length;
  return Math.floor(((textLength(inside) - padding) * 3) / 4);
}

/** Length of the two characters at the end of Base64, if they are escapes. */
const ESCAPED_PADDING = 12;

function cutText(
  bytes: Uint8Array,
  blocks: Blocks,
  structure: Span | undefined,
  { maxBytes, isStructureFixed, source, hasLinks, keep }: CutOptions,
): readonly Edit[] {
  const texts = blocks.texts.map(({ inside }) => bytes.subarray(inside.start, inside.end));
  const lengths = texts.map(textLength);
  const isLong = sum(lengths) > maxBytes + WORTHWHILE_BYTES;
  const isLarge = structure !== undefined && structure.end - structure.start > maxBytes;
  const leavesStructure = isLarge && !isStructureFixed();
  if (!isLong && !leavesStructure) return NO_EDITS;

  const ofStructure = leavesStructure ? insideOf(readText(bytes, structure)) : undefined;
  const parts = ofStructure === undefined ? texts : [...texts, ofStructure];
  const structureAt = lengthBefore(lengths, texts.length);
  const length = ofStructure === undefined ? structureAt - 1 : structureAt + textLength(ofStructure);
  const [only = NOTHING, ...more] = parts;
  // Copies, because the memory of the answer is used again.
  const inside = more.length === 0 ? only.slice() : join([only, ...more.flatMap((part) => [LINE_BREAK, part])]);
  const uri = keep({ inside, length, isBinary: false, mimeType: 'text/plain' });
  if (uri === undefined) return NO_EDITS;
  const note = (what: string, from: number, to: number) =>
    `[Trunkline left out ${what} here: bytes ${from} to ${to} of ${length}. To read them, call trunkline__read_result with uri "${uri}" and offset ${from}.]`;
  const noteOn = (from: number, to: number) => note('a part of the text', from, to);
  const edits = isLong ? cutTexts(blocks, { texts, lengths }, maxBytes, noteOn) : [];
  if (leavesStructure) {
    const text = note('the structured content', structureAt, length);
    edits.push({ span: structure, text: toBytes(JSON.stringify({ trunkline: text })) });
  }
  if (hasLinks) edits.push(linkEdit(blocks, { uri, name: `result of ${source}`, size: length }));
  return edits;
}

interface Blocks {
  readonly content: Span;
  readonly elements: readonly Span[];
  readonly texts: readonly Part[];
  readonly binaries: readonly (Part & BlockKind)[];
}

interface Part {
  /** Index of the block with the text or the bytes. */
  readonly block: number;
  /** The literal without its quotes. */
  readonly inside: Span;
}

interface BlockContent extends BlockKind {
  readonly literal: Span | undefined;
}

interface BlockKind {
  readonly kind: 'text' | 'image' | 'audio' | 'resource';
  readonly mimeType?: string | undefined;
  /** URI of an embedded resource. */
  readonly uri?: string | undefined;
}

const OTHER: BlockContent = { kind: 'text', literal: undefined };

/** The content blocks of a result; `undefined` if it has no list of them. */
function blocksOf(bytes: Uint8Array, content: Span | undefined): Blocks | undefined {
  if (content === undefined || bytes[content.start] !== OPEN_BRACKET) return undefined;
  const elements: Span[] = [];
  const texts: Part[] = [];
  const binaries: (Part & BlockKind)[] = [];
  visitElements(bytes, content.start, Number.POSITIVE_INFINITY, (element) => {
    const { literal, ...about } = contentOf(bytes, element);
    if (literal !== undefined && isString(bytes, literal)) {
      const part = { block: elements.length, inside: { start: literal.start + 1, end: literal.end - 1 } };
      if (about.kind === 'text') texts.push(part);
      else binaries.push({ ...part, ...about });
    }
    elements.push(element);
  });
  return { content, elements, texts, binaries };
}

function contentOf(bytes: Uint8Array, block: Span): BlockContent {
  if (!isObject(bytes, block)) return OTHER;
  const member = membersOf(bytes, block);
  const kind = stringAt(bytes, member('type'));
  if (kind === 'text') return { kind, literal: member('text') };
  const mimeType = stringAt(bytes, member('mimeType'));
  if (kind === 'image' || kind === 'audio') return { kind, literal: member('data'), mimeType };
  const resource = kind === 'resource' ? member('resource') : undefined;
  if (resource === undefined || !isObject(bytes, resource)) return OTHER;
  const inner = membersOf(bytes, resource);
  const text = inner('text');
  if (text !== undefined) return { kind: 'text', literal: text };
  const uri = stringAt(bytes, inner('uri'));
  const type = stringAt(bytes, inner('mimeType'));
  return { kind: 'resource', literal: inner('blob'), mimeType: type, uri };
}

/** Returns a function that finds a member by its name. Finds no duplicated member, because readers differ in which one they take. */
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
 * Edits that keep the first and the last bytes of all texts, which are too long together. `noteOn` describes the bytes that are left out.
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
    // Removes the block with the comma before it, because the block of the first text stays before it.
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

/** Length of the first `count` texts, each with a line break behind it. */
function lengthBefore(lengths: readonly number[], count: number): number {
  return sum(lengths.slice(0, count)) + count;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
