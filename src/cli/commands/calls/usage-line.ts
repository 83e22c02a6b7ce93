import { isRecord } from '../../../wire/json/json-value.js';
import { clipText, printable } from '../../../wire/json/printable.js';
import { typesOf } from './call-arguments.js';

/*
 * Arguments of a tool as words for a shell. A model copies them into a command line, and a server may have written anything, so names and
 * values with characters that a shell reads are left out.
 */
const PLAIN = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

const MAX_VALUES = 6;
const MAX_DEPTH = 3;
const MAX_TEXT_BYTES = 200;

/** Returns the tool and its arguments as `trunkline call` takes them: required ones first, and others in brackets. */
export function usageOf(name: string, inputSchema: unknown, mostOptional = Number.POSITIVE_INFINITY): string {
  const { required, optional } = argumentsOf(inputSchema);
  if (![...required, ...optional].every(([key]) => PLAIN.test(key))) return `${name} '{...}'`;
  const shown = optional.slice(0, mostOptional).map(([key, schema]) => `[${formOf(key, schema)}]`);
  const more = optional.length > mostOptional ? ['[...]'] : [];
  return [name, ...required.map(([key, schema]) => formOf(key, schema)), ...shown, ...more].join(' ');
}

/** Returns a line about each argument: its type, whether it is required, and its description, cut. */
export function describedArguments(inputSchema: unknown): string[] {
  const { required, optional } = argumentsOf(inputSchema);
  const line = ([key, schema]: Argument, isRequired: boolean) => {
    const { description, default: standard } = isRecord(schema) ? schema : {};
    const facts = [
      typeText(schema),
      ...(isRequired ? ['required'] : []),
      ...(standard === undefined ? [] : [defaultText(standard)]),
    ];
    const text = typeof description === 'string' ? `: ${description.replace(/\s+/g, ' ').trim()}` : '';
    return printable(
      clipText(`${PLAIN.test(key) ? key : JSON.stringify(key)} (${facts.join(', ')})${text}`, MAX_TEXT_BYTES, ' …'),
    );
  };
  return [...required.map((each) => line(each, true)), ...optional.map((each) => line(each, false))];
}

/** The type of a value, with the members of objects, such as `[{ path: string }]`. */
function typeText(schema: unknown, depth = MAX_DEPTH): string {
  const types = typesOf(schema);
  if (types.length === 1 && isRecord(schema) && depth > 0) {
    const { items, properties } = schema;
    if (types[0] === 'array' && isRecord(items)) return `[${typeText(items, depth - 1)}]`;
    const members = types[0] === 'object' && isRecord(properties) ? Object.entries(properties) : [];
    const shown = members.slice(0, MAX_VALUES).map(([key, value]) => `${key}: ${typeText(value, depth - 1)}`);
    if (shown.length > 0) return `{ ${shown.join(', ')}${members.length > MAX_VALUES ? ', ...' : ''} }`;
  }
  return types.join(' or ') || 'any';
}

function defaultText(value: unknown): string {
  return `default ${clipText(JSON.stringify(value), MAX_TEXT_BYTES, ' …')}`;
}

type Argument = readonly [key: string, schema: unknown];

function argumentsOf(inputSchema: unknown): { readonly required: Argument[]; readonly optional: Argument[] } {
  const { properties, required } = isRecord(inputSchema) ? inputSchema : {};
  const all = isRecord(properties) ? Object.entries(properties) : [];
  const isRequired = ([key]: Argument) => Array.isArray(required) && required.includes(key);
  return { required: all.filter(isRequired), optional: all.filter((each) => !isRequired(each)) };
}

/** The word for one argument, such as `path=TEXT`. */
function formOf(key: string, schema: unknown): string {
  const types = typesOf(schema);
  const values = isRecord(schema) && Array.isArray(schema.enum) ? schema.enum : [];
  if (values.length > 0 && values.length <= MAX_VALUES && values.every((value) => PLAIN.test(String(value))))
    return `${key}=${values.join('|')}`;
  const scalar = scalarOf(types);
  if (scalar !== undefined) return `${key}=${scalar}`;
  const item = types.includes('array') && isRecord(schema) ? scalarOf(typesOf(schema.items)) : undefined;
  return item === undefined ? `${key}:=JSON` : `${key}=${item}...`;
}

function scalarOf(types: readonly unknown[]): string | undefined {
  if (types.length === 0 || types.includes('string')) return 'TEXT';
  if (types.includes('number') || types.includes('integer')) return 'NUMBER';
  return types.includes('boolean') ? 'true|false' : undefined;
}
