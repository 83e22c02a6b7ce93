import { errorMessage } from '../../../host/errors/error-text.js';
import { UsageError } from '../../../host/errors/usage-error.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';

/** The arguments of a call as they were typed: one JSON object, or pairs that need the schema of the tool. */
export type CallArguments =
  | { readonly kind: 'object'; readonly text: string }
  | { readonly kind: 'pairs'; readonly pairs: readonly ArgumentPair[] };

export interface ArgumentPair {
  readonly key: string;
  readonly value: string;
  /** Whether the pair is `key:=VALUE`, so that the value is JSON for any schema. */
  readonly isJson: boolean;
}

const PAIR = /^(?<key>[^=]+?)(?<sign>:?=)(?<value>.*)$/s;
const JSON_START = /^\s*[[{"]/;

/** Reads the words after the name of the tool. Throws a `UsageError` for words that are not arguments. */
export function readArguments(words: readonly string[]): CallArguments {
  const [first = '{}', ...more] = words;
  const isJson = JSON_START.test(first) || (more.length === 0 && !PAIR.test(first));
  if (isJson) {
    if (more.length > 0) throw new UsageError('`trunkline call` takes a tool and one JSON object', QUOTES);
    return { kind: 'object', text: toJsonObject(first) };
  }
  const pairs = words.map((word) => {
    const { key, sign, value } = PAIR.exec(word)?.groups ?? {};
    if (key === undefined || value === undefined)
      throw new UsageError(`the argument \`${word}\` has no value`, PAIRS_EXAMPLE);
    return { key, value, isJson: sign === ':=' };
  });
  return { kind: 'pairs', pairs };
}

const QUOTES = `put quotes around the JSON: trunkline call TOOL '{"path": "notes.txt"}'`;
const PAIRS_EXAMPLE = 'for example: trunkline call files.read_text_file path=notes.txt head:=5';
const JSON_EXAMPLE = `for example: trunkline call files__read_text_file '{"path": "notes.txt"}'`;

/** Returns the text of a JSON object on one line. Keeps the digits of numbers and the order of members. */
export function toJsonObject(text: string): string {
  const value = parse(text);
  if (!isRecord(value)) {
    const found = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`;
    throw new UsageError(`the arguments of a call must be a JSON object; found ${found}`, JSON_EXAMPLE);
  }
  return onOneLine(text);
}

/** Replaces line breaks by spaces. They stand only between tokens, because strings in valid JSON contain none. */
function onOneLine(json: string): string {
  return json.replace(/[\r\n]/g, ' ');
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const reason = errorMessage(cause);
    throw new UsageError(`the arguments of a call must be a JSON object: ${reason}`, JSON_EXAMPLE, { cause });
  }
}

/**
 * Builds the JSON object of these pairs. A value has the type that the tool's `inputSchema` names for its key, or is text if there is none.
 * The values of a repeated key become an array. Throws a `UsageError` for a value that does not fit.
 */
export function objectOf(pairs: readonly ArgumentPair[], inputSchema: unknown): string {
  const properties = isRecord(inputSchema) && isRecord(inputSchema.properties) ? inputSchema.properties : {};
  const values = new Map<string, ArgumentPair[]>();
  for (const pair of pairs) values.set(pair.key, [...(values.get(pair.key) ?? []), pair]);
  const members = [...values].map(([key, all]) => `${JSON.stringify(key)}:${argumentOf(all, properties[key])}`);
  return `{${members.join(',')}}`;
}

/** The JSON text of one argument. */
function argumentOf(all: readonly ArgumentPair[], schema: unknown): string {
  const [first] = all;
  if (first === undefined) return 'null';
  const types = typesOf(schema);
  if (all.length === 1 && (first.isJson || !types.includes('array') || types.includes('string')))
    return textOf(first, types);
  if (all.length === 1 && Array.isArray(parseJson(first.value))) return onOneLine(first.value);
  if (all.length > 1 && types.length > 0 && !types.includes('array'))
    throw new UsageError(
      `the argument \`${first.key}\` is given ${all.length} times`,
      'the tool takes one value for it',
    );
  const ofItem = typesOf(isRecord(schema) ? schema.items : undefined);
  return `[${all.map((pair) => textOf(pair, ofItem)).join(',')}]`;
}

export function typesOf(schema: unknown): readonly unknown[] {
  if (!isRecord(schema)) return [];
  const { type, anyOf, oneOf } = schema;
  if (type !== undefined) return Array.isArray(type) ? type : [type];
  const alternatives = anyOf ?? oneOf;
  return Array.isArray(alternatives) ? alternatives.flatMap((each) => typesOf(each)) : [];
}

/** The types of JSON Schema, each with the check of a parsed value and its name in messages. */
const FORMS: readonly { readonly type: string; readonly is: (value: unknown) => boolean; readonly name: string }[] = [
  { type: 'integer', is: (value) => typeof value === 'number' && Number.isInteger(value), name: 'a whole number' },
  { type: 'number', is: (value) => typeof value === 'number', name: 'a number' },
  { type: 'boolean', is: (value) => typeof value === 'boolean', name: 'true or false' },
  { type: 'array', is: Array.isArray, name: 'a JSON array' },
  { type: 'object', is: isRecord, name: 'a JSON object' },
  { type: 'null', is: (value) => value === null, name: 'null' },
];

function textOf({ key, value, isJson }: ArgumentPair, types: readonly unknown[]): string {
  const parsed = parseJson(value);
  if (isJson) {
    if (parsed === undefined)
      throw new UsageError(`the value of \`${key}:=\` is not JSON: \`${value}\``, `for text write \`${key}=${value}\``);
    return onOneLine(value);
  }
  const forms = FORMS.filter(({ type }) => types.includes(type));
  if (forms.length === 0 || types.includes('string')) return JSON.stringify(value);
  // The digits of a number stay as they were typed.
  if (forms.some(({ is }) => is(parsed))) return onOneLine(value);
  const wanted = forms.map(({ name }) => name).join(' or ');
  throw new UsageError(`the argument \`${key}\` must be ${wanted}`, `found \`${value}\``);
}
