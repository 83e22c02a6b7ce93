import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { jsonSchemaText } from '../../../src/config/schema/schema.js';
import { SHARED_SETTINGS } from '../../../src/config/schema/settings.js';

const ROOT = join(import.meta.dirname, '../../..');

interface Schema {
  additionalProperties?: unknown;
  default?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
}

const schema: Schema & { definitions: { Server: Schema } } = JSON.parse(jsonSchemaText());

describe('the JSON Schema for editors', () => {
  test('is committed as it is generated; `npm run generate` writes it', () => {
    expect(readFileSync(join(ROOT, 'config/trunkline.schema.json'), 'utf8')).toBe(jsonSchemaText());
  });

  test('flags unknown keys in every map that has known ones', () => {
    const closed = mapsOf(schema).map(({ additionalProperties }) => additionalProperties);
    expect(closed.length).toBeGreaterThan(5);
    expect(new Set(closed)).toStrictEqual(new Set([false]));
  });

  test('describes every key', () => {
    const undescribed = mapsOf(schema).flatMap(({ properties = {} }) =>
      Object.entries(properties).filter(([, { description }]) => description === undefined),
    );
    expect(undescribed).toStrictEqual([]);
  });

  test('offers the same settings for `defaults` as for a server, and a default for each', () => {
    const { env, envFile, rules, interceptors, ...defaults } = schema.properties?.defaults?.properties ?? {};
    expect(env).toMatchObject({ type: 'object', additionalProperties: { type: 'string' } });
    expect(schema.definitions.Server.properties).toMatchObject({ ...defaults, envFile });
    expect(schema.definitions.Server.properties?.rules).toEqual({ ...rules, description: expect.any(String) });
    expect(schema.definitions.Server.properties?.interceptors).toMatchObject({
      ...interceptors,
      description: expect.any(String),
    });
    expect(Object.keys(defaults).sort()).toStrictEqual(Object.keys(SHARED_SETTINGS).sort());
    // Nothing is limited by default.
    const { restart, limits, results, ...settings } = defaults;
    for (const limit of Object.values(limits?.properties ?? {})) expect(limit).not.toHaveProperty('default');
    for (const setting of Object.values({ ...settings, ...restart?.properties, ...results?.properties })) {
      expect(setting).toHaveProperty('default');
    }
  });
});

describe('docs/configuration.md', () => {
  const page = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8');
  const keys = mapsOf(schema).flatMap(({ properties = {} }) => Object.entries(properties));

  test.each(keys)('has a row for `%s` with its default', (key, { default: standard }) => {
    const rows = page.split('\n').filter((line) => line.startsWith(`| \`${key}\``));
    expect(rows).not.toStrictEqual([]);
    const values = Array.isArray(standard) && standard.length > 0 ? standard : [standard];
    // YAML needs quotes around a scheme.
    const text = rows.join('\n').replaceAll('`"', '`').replaceAll('"`', '`');
    if (standard !== undefined) expect(text).toContain(`| ${values.map((value) => `\`${value}\``).join(', ')} |`);
  });
});

/** Every map with known keys, at any depth. */
function mapsOf(node: unknown): Schema[] {
  if (typeof node !== 'object' || node === null) return [];
  const below = Object.values(node).flatMap(mapsOf);
  return isMapOfKnownKeys(node) ? [node, ...below] : below;
}

function isMapOfKnownKeys(node: object): node is Schema {
  return 'properties' in node && 'additionalProperties' in node;
}
