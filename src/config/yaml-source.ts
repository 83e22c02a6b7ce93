import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml';
import { ConfigError, type ConfigProblem } from './config-error.js';

/** Lines and columns count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

export type Path = readonly PropertyKey[];

/** Parsed YAML that still knows where everything stands. */
export interface YamlSource {
  readonly value: unknown;
  /** Where the value at `path` stands, or its key when there is no value. */
  positionOf(path: Path): Position;
  /** Where the last key of `path` stands. */
  positionOfKey(path: Path): Position;
}

/** Parses a text of one YAML document, of which JSON is a part. Throws a `ConfigError` naming `file` otherwise. */
export function parseYaml(text: string, file: string): YamlSource {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };

  const [first, ...rest] = [...syntaxProblems(document, text, positionAt), ...referenceProblems(document, positionAt)];
  if (first !== undefined) throw new ConfigError('config-syntax', file, [first, ...rest]);

  const find = (path: Path, part: 'key' | 'value') => positionAt(offsetOf(document, path, part));
  return {
    value: toValue(document, file),
    positionOf: (path) => find(path, 'value'),
    positionOfKey: (path) => find(path, 'key'),
  };
}

type PositionAt = (offset: number) => Position;

// The library's own messages may quote the text at fault, which can be a secret; these never do.
const PLAIN_WORDS: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: 'this alias cannot be read; expected * and the name of an anchor',
  BAD_DQ_ESCAPE: 'a backslash in "…" starts no known escape; expected \\\\ for a literal one',
  BAD_INDENT: 'the indentation does not fit the lines above; expected the same as their neighbours',
  BAD_SCALAR_START: 'a value cannot start with this character; expected quotes around it',
  BLOCK_AS_IMPLICIT_KEY: 'a second `key:` on one line; expected a line of its own, or quotes around the value',
  BLOCK_IN_FLOW: 'an indented block inside [ ] or { }; expected commas and brackets only',
  MISSING_CHAR: 'something is missing here; expected a closing quote or bracket, a comma or a colon',
  MULTILINE_IMPLICIT_KEY: 'a key that spans lines; expected `key:` on one line',
  MULTIPLE_DOCS: 'a second document starts here; expected a single one, without `---` between',
  NON_STRING_KEY: 'a list or map stands where a key should; expected a text',
  TAB_AS_INDENT: 'a tab indents this line; expected spaces',
  TAG_RESOLVE_FAILED: 'an unknown tag; expected a plain value, in quotes if it starts with !',
  UNEXPECTED_TOKEN: 'this does not belong here; expected `key: value`, or quotes around a text with special characters',
};

function syntaxProblems({ errors, warnings }: Document, text: string, positionAt: PositionAt): ConfigProblem[] {
  return [...errors, ...warnings].map(({ code, pos: [offset] }) => {
    const message =
      code === 'DUPLICATE_KEY'
        ? `the key \`${keyAt(text, offset)}\` stands here a second time; expected it once`
        : (PLAIN_WORDS[code] ?? 'this is not valid YAML; expected `key: value` lines');
    return { message, ...positionAt(offset) };
  });
}

function keyAt(text: string, offset: number): string {
  const { key = '' } = /^["']?(?<key>[^"':\s]*)/.exec(text.slice(offset))?.groups ?? {};
  return key;
}

/** Aliases without an anchor, and the one key that is never data. */
function referenceProblems(document: Document, positionAt: PositionAt): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const add = (node: Node, message: string) => problems.push({ message, ...positionAt(node.range?.[0] ?? 0) });
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) === undefined) add(alias, 'this alias has no anchor; expected one above it');
    },
    Pair: (_, { key }) => {
      if (isScalar(key) && key.value === '__proto__')
        add(key, 'the key `__proto__` is not allowed; expected another one');
    },
  });
  return problems;
}

function toValue(document: Document, file: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    // What remains is the library's guard against aliases that multiply.
    const message = 'too many aliases to unfold; expected fewer';
    throw new ConfigError('config-syntax', file, [{ message, ...START }], { cause });
  }
}

const START: Position = { line: 1, column: 1 };

function offsetOf(document: Document, path: Path, part: 'key' | 'value'): number {
  let node: unknown = document.contents;
  let offset = startOf(node) ?? 0;
  for (const [depth, step] of path.entries()) {
    const parent = isAlias(node) ? node.resolve(document) : node;
    let key: unknown;
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isScalar(item.key) && item.key.value === step);
      key = pair?.key;
      node = pair?.value;
    } else {
      node = isSeq(parent) ? parent.items[Number(step)] : undefined;
    }
    const wantsKey = depth === path.length - 1 && part === 'key';
    const isEmpty = isScalar(node) && node.value === null;
    // A path may lead to what is not there; its nearest ancestor is where it should be.
    offset = (wantsKey || isEmpty ? startOf(key) : undefined) ?? startOf(node) ?? startOf(key) ?? offset;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range?.[0] : undefined;
}
