import type { ParamShapes, ToolShapes } from '../resolve/config.js';
import { faultsAt } from '../resolve/server-fault.js';

/** The two places of a parameter's value. */
const VALUE_KEYS = ['set', 'default'] as const;

/** Where the values of parameters are within an entry of a server. */
export function valuePaths({ params = {} }: ToolShapes = {}): string[][] {
  return Object.entries(params).flatMap(([tool, shapes]) =>
    VALUE_KEYS.flatMap((key) => Object.keys(shapes[key] ?? {}).map((param) => ['tools', 'params', tool, key, param])),
  );
}

/** All texts in the values of parameters. */
export function textsIn({ params = {} }: ToolShapes = {}): string[] {
  return Object.values(params).flatMap((shapes) =>
    VALUE_KEYS.flatMap((key) => Object.values(shapes[key] ?? {})).flatMap(texts),
  );
}

/** The shapes of a server's tools with each text in a value replaced. `undefined` if nothing is shaped. */
export function resolveShapes(
  { rename, describe, params }: ToolShapes = {},
  expand: (text: string) => string,
): ToolShapes | undefined {
  if (rename === undefined && describe === undefined && params === undefined) return undefined;
  const resolved = Object.entries(params ?? {}).map(([tool, shapes]): [string, ParamShapes] => {
    const values = VALUE_KEYS.flatMap((key) => {
      const of = shapes[key];
      if (of === undefined) return [];
      const entries = Object.entries(of).map(([param, value]) => [
        param,
        faultsAt(['tools', 'params', tool, key, param], () => mapTexts(value, expand)),
      ]);
      return [[key, Object.fromEntries(entries)]];
    });
    return [tool, { ...shapes, ...Object.fromEntries(values) }];
  });
  return {
    ...(rename && { rename }),
    ...(describe && { describe }),
    ...(params && { params: Object.fromEntries(resolved) }),
  };
}

function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(texts) : [];
}

function mapTexts(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === 'string') return map(value);
  if (Array.isArray(value)) return value.map((each) => mapTexts(each, map));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, mapTexts(each, map)]));
}
