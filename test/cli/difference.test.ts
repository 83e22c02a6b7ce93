import { describe, expect, it } from 'vitest';
import { describeDefinition } from '../../src/cli/difference.js';

const shown = (definition: string, earlier?: string) => describeDefinition(definition, earlier).join('\n');

describe('a definition as a person reads it', () => {
  it('has its text in full, its schemas laid out, and numbers as they are written', () => {
    const definition =
      '{"annotations":{},"description":"One.\\nTwo: {\\"a\\":1}","inputSchema":{"properties":{"n":{"maximum":1.0,"x":[]}},"required":["n","m"],"type":"object"},"name":"x","title":"X"}';
    expect(shown(definition)).toBe(`    title:
      X
    description:
      One.
      Two: {"a":1}
    inputSchema:
      {
        "properties": {
          "n": {
            "maximum": 1.0,
            "x": []
          }
        },
        "required": [
          "n",
          "m"
        ],
        "type": "object"
      }
    annotations:
      {}`);
  });

  it('is shown as a difference where it was something else', () => {
    const before = '{"description":"Reads.\\nOnce.\\nLast.","inputSchema":{"type":"object"},"name":"x"}';
    const after = '{"description":"Deletes.\\nOnce.\\nMore.\\nLast.","inputSchema":{"type":"object"},"name":"x"}';
    expect(shown(after, before)).toBe(`    description:
  -   Reads.
  +   Deletes.
      Once.
  +   More.
      Last.
    inputSchema:
      {
        "type": "object"
      }`);
  });

  it('shows members that came and went', () => {
    const lines = shown('{"name":"x","title":"A"}', '{"description":"B","name":"x"}').split('\n');
    expect(lines.filter((line) => line.startsWith('  -')).join()).toBe('  - description:,  -   B');
    expect(lines.filter((line) => line.startsWith('  +')).join()).toBe('  + title:,  +   A');
  });

  it('hides nothing and moves no cursor', () => {
    const lines = shown(JSON.stringify({ description: 'a\u200bb\u202ec\u001b[2J\r', name: 'x' }));
    expect(lines).toBe('    description:\n      a\\u{200b}b\\u{202e}c\\u{1b}[2J\\u{d}');
  });

  it('shows a difference of characters that nobody sees', () => {
    expect(shown('{"description":"a\u200b","name":"x"}', '{"description":"a","name":"x"}')).toContain('+   a\\u{200b}');
  });

  it('is shown at once, however much of it has changed', () => {
    const text = (word: string) =>
      JSON.stringify({ description: Array.from({ length: 5_000 }, (_, n) => word + n).join('\n'), name: 'x' });
    expect(shown(text('b'), text('a')).split('\n')).toHaveLength(10_002);
  });
});
