import { type Node, type ParseError, parseTree } from 'jsonc-parser';
import { parse as parseToml, TomlError } from 'smol-toml';
import { LineCounter, parseDocument } from 'yaml';

export type Format = 'json' | 'jsonc' | 'toml' | 'yaml';

/** Thrown for a file that cannot be read or changed. The message is a part of a sentence and quotes nothing of the file. */
export class FileRefusal extends Error {
  override readonly name = 'FileRefusal';
}

export const BYTE_ORDER_MARK = '\ufeff';

/**
 * Parses the text of a file; `undefined` for an empty file. Accepts comments and trailing commas in JSON, because several clients do.
 *
 * Throws a `FileRefusal` whose message names the line of the mistake, if it is known, and quotes nothing of the text.
 */
export function parseText(format: Format, text: string): unknown {
  const content = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  if (content.trim() === '') return undefined;
  switch (format) {
    case 'json':
    case 'jsonc':
      return jsonValue(parseJsonTree(content));
    case 'toml':
      return tomlValue(content);
    case 'yaml':
      return yamlValue(content);
  }
}

/** The tree of JSON with comments. Throws a `FileRefusal` whose message quotes nothing of the text. */
export function parseJsonTree(content: string): Node {
  const errors: ParseError[] = [];
  const tree = safely('JSON', () => parseTree(content, errors, { allowTrailingComma: true, disallowComments: false }));
  const [error] = errors;
  if (error !== undefined || tree === undefined)
    throw mistake('JSON', content.slice(0, error?.offset ?? 0).split('\n').length);
  return tree;
}

/** The value of a node. A member `__proto__` is a member like any other. */
function jsonValue({ type, value, children = [] }: Node): unknown {
  if (type === 'array') return children.map(jsonValue);
  if (type !== 'object') return value;
  return Object.fromEntries(
    children.map(({ children: [key, member] = [] }) => [key?.value, member && jsonValue(member)]),
  );
}

function tomlValue(content: string): unknown {
  try {
    return parseToml(content, { integersAsBigInt: 'asNeeded' });
  } catch (error) {
    throw mistake('TOML', error instanceof TomlError ? error.line : undefined);
  }
}

function yamlValue(content: string): unknown {
  const lineCounter = new LineCounter();
  return safely('YAML', () => {
    const document = parseDocument(content, { prettyErrors: false, logLevel: 'error', lineCounter });
    const [error] = document.errors;
    if (error !== undefined) throw mistake('YAML', lineCounter.linePos(error.pos[0]).line);
    return document.toJS({ maxAliasCount: 100 });
  });
}

/** Replaces an error of a parser, as for a file that is nested too deeply, because its message may quote the file. */
function safely<T>(language: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof FileRefusal ? error : mistake(language, undefined);
  }
}

function mistake(language: string, line: number | undefined): FileRefusal {
  return new FileRefusal(`it is not valid ${language}${line === undefined ? '' : `: the mistake is in line ${line}`}`);
}
