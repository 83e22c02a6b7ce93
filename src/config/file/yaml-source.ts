import { type Document, type ErrorCode, LineCounter, parseDocument } from 'yaml';
import { ConfigError, type ConfigProblem } from './config-error.js';
import { type Path, YamlNodes } from './yaml-nodes.js';

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
  // The library compares each key of a map with all others, which takes minutes for a map with very many.
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, uniqueKeys: false };
  const document = parseDocument(text, options);
  const positionAt = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };

  const nodes = new YamlNodes(document.contents);
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

// Messages of the library may quote the invalid text, which can be a secret. These messages never quote it.
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

/** The library has one code for lines that are not aligned, and for a list or map in brackets that does not end. */
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
    return document.toJS();
  } catch (cause) {
    // The only remaining error is the library's limit on aliases, which guards against exponential growth.
    const message = 'too many aliases to expand; use fewer';
    throw new ConfigError('config-syntax', file, [{ message, ...START }], { cause });
  }
}

const START: Position = { line: 1, column: 1 };
