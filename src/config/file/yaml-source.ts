import {
  type Alias,
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from 'yaml';
import { ConfigError, type ConfigProblem, type Path } from './config-error.js';

/** Lines and columns count from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** Parsed YAML with the position of each key and value. */
export interface YamlSource {
  readonly value: unknown;
  /** Position of the value at `path`, or of its key if there is no value. */
  positionOf(path: Path): Position;
  /** Position of the last key of `path`. */
  positionOfKey(path: Path): Position;
}

/** Parses one YAML document, which may be JSON. Throws a `ConfigError` with the name `file` if the text is not valid. */
export function parseYaml(text: string, file: string): YamlSource {
  const lines = new LineCounter();
  // `uniqueKeys` would compare each key of a map with all others, which takes minutes for a large map.
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, uniqueKeys: false };
  const document = parseDocument(text, options);
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };

  const nodes = new YamlNodes(document);
  const nodeProblems = nodes.problems.map(({ message, offset }) => ({ message, ...positionAt(offset) }));
  const [first, ...rest] = [...syntaxProblems(document, positionAt), ...nodeProblems];
  if (first !== undefined) throw new ConfigError('config-syntax', file, [first, ...rest]);

  const find = (path: Path, part: 'key' | 'value') => positionAt(nodes.offsetOf(path, part));
  return {
    value: toValue(document, file),
    positionOf: (path) => find(path, 'value'),
    positionOfKey: (path) => find(path, 'key'),
  };
}

type PositionAt = (offset: number) => Position;

// Replaces the messages of the library, which may quote invalid text, because that text can be a secret.
const PLAIN_WORDS: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: 'this alias is not valid; expected * followed by the name of an anchor',
  BAD_DQ_ESCAPE: 'unknown escape sequence in a double-quoted string; write \\\\ for a literal backslash',
  BAD_INDENT: 'the indentation does not match the lines above; align this line with them',
  BAD_SCALAR_START: 'a value cannot start with this character; put the value in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second `key:` on the same line; move it to a separate line, or put the value in quotes',
  BLOCK_IN_FLOW: 'an indented block inside [ ] or { }; use commas and brackets instead',
  MISSING_CHAR: 'a character is missing here; expected a closing quote or bracket, a comma or a colon',
  MULTILINE_IMPLICIT_KEY: 'this key spans several lines; write `key:` on one line',
  MULTIPLE_DOCS: 'a second YAML document starts here; remove the `---`, as the file may contain only one document',
  NON_STRING_KEY: 'this key is a list or a map; expected a string',
  TAB_AS_INDENT: 'this line is indented with a tab; use spaces',
  TAG_RESOLVE_FAILED: 'unknown tag; remove it, or put a value that starts with ! in quotes',
  UNEXPECTED_TOKEN: 'unexpected text; expected `key: value`, or quotes around a string with special characters',
};

/** Matches the message about an open bracket, because the library has the same code for wrong indentation. */
const OPEN_BRACKET = /^Flow (?:map|sequence) in block collection .* end with a ([\]}])/;

function syntaxProblems({ errors, warnings }: Document, positionAt: PositionAt): ConfigProblem[] {
  return [...errors, ...warnings].map(({ code, message: technical, pos: [offset] }) => {
    const [, bracket] = OPEN_BRACKET.exec(technical) ?? [];
    const message =
      bracket === undefined
        ? (PLAIN_WORDS[code] ?? 'this is not valid YAML; expected `key: value` lines')
        : `the lines above open a bracket and do not close it; expected \`${bracket}\` before this line, or more indentation`;
    return { message, ...positionAt(offset) };
  });
}

function toValue(document: Document, file: string): unknown {
  try {
    const value: unknown = document.toJS();
    if (nodesIn(value, MAX_NODES) <= MAX_NODES) return value;
  } catch (error) {
    // Any other error is the library's limit on aliases, which guards against exponential growth.
    if (error instanceof RangeError) throw error;
  }
  const message = 'too many aliases to expand; use fewer';
  throw new ConfigError('config-syntax', file, [{ message, line: 1, column: 1 }]);
}

/** Counts the nodes of a value until there are more than `max`. */
function nodesIn(value: unknown, max: number): number {
  let count = 1;
  if (typeof value !== 'object' || value === null) return count;
  for (const each of Object.values(value)) {
    if (count > max) return count;
    count += nodesIn(each, max - count);
  }
  return count;
}

/** Limit on the nodes after aliases are expanded, because a few lines of nested aliases can expand beyond the memory. */
const MAX_NODES = 1_000_000;

/** The offsets of the nodes of a YAML document, and the mistakes that the parser does not find. Takes linear time. */
class YamlNodes {
  readonly problems: { readonly message: string; readonly offset: number }[] = [];
  readonly #root: unknown;
  readonly #targets = new Map<Alias, Node>();
  readonly #pairs = new Map<YAMLMap, Map<unknown, Pair>>();

  constructor(document: Document) {
    this.#root = document.contents;
    const anchors = new Map<string, Node>();
    visit(document, {
      Value: (_, node) => {
        if (node.anchor !== undefined) anchors.set(node.anchor, node);
        if (isMap(node)) this.#pairs.set(node, this.#pairsIn(node));
      },
      Alias: (_, alias) => {
        const target = anchors.get(alias.source);
        if (target === undefined) this.#report(alias, 'this alias has no anchor; define the anchor above it');
        else this.#targets.set(alias, target);
      },
    });
  }

  /** The offset of the value at `path`, or of its key. A missing value has the offset of its nearest ancestor. */
  offsetOf(path: Path, part: 'key' | 'value'): number {
    let node = this.#root;
    let offset = startOf(node) ?? 0;
    for (const [depth, step] of path.entries()) {
      const parent = isAlias(node) ? this.#targets.get(node) : node;
      let key: unknown;
      if (isMap(parent)) {
        const pair = this.#pairs.get(parent)?.get(step);
        key = pair?.key;
        node = pair?.value;
      } else {
        node = isSeq(parent) ? parent.items[Number(step)] : undefined;
      }
      const wantsKey = depth === path.length - 1 && part === 'key';
      const isEmpty = isScalar(node) && node.value === null;
      offset = (wantsKey || isEmpty ? startOf(key) : undefined) ?? startOf(node) ?? startOf(key) ?? offset;
    }
    return offset;
  }

  #pairsIn(map: YAMLMap): Map<unknown, Pair> {
    const pairs = new Map<unknown, Pair>();
    for (const pair of map.items) {
      const name = isScalar(pair.key) ? pair.key.value : undefined;
      if (name === '__proto__') this.#report(pair.key, 'the key `__proto__` is not allowed; choose another key');
      if (pairs.has(name)) {
        this.#report(pair.key, `the key \`${String(name)}\` is used twice; rename or remove one of the two`);
      } else if (name !== undefined) {
        pairs.set(name, pair);
      }
    }
    return pairs;
  }

  #report(node: unknown, message: string): void {
    this.problems.push({ message, offset: startOf(node) ?? 0 });
  }
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
