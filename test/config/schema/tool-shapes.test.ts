import { describe, expect, test } from 'vitest';
import { changeOf, variantOf } from '../../../src/config/resolve/config.js';
import { loadServer, problemsOf } from '../loading.js';

const SHAPED = `
servers:
  github:
    command: node
    tools:
      rename: { search: search_docs }
      describe: { search: { append: Not for code. }, other: New text. }
      params:
        search:
          hide: [owner]
          set: { owner: "\${OWNER}", deep: [{ a: "x \${TOKEN:-none} $\${NOT}", b: 1.5 }, null, true] }
          default: { limit: 10 }
          describe: { q: Words. }
`;

describe('tools in another form', () => {
  test('have the values of variables in the values of their parameters, also deep within', () => {
    const { shapes, variables, references } = loadServer(SHAPED, { env: { OWNER: 'ada', TOKEN: 'hunter2' } });
    expect(shapes).toEqual({
      rename: { search: 'search_docs' },
      describe: { search: { append: 'Not for code.' }, other: 'New text.' },
      params: {
        search: {
          hide: ['owner'],
          set: { owner: 'ada', deep: [{ a: `x hunter2 \${NOT}`, b: 1.5 }, null, true] },
          default: { limit: 10 },
          describe: { q: 'Words.' },
        },
      },
    });
    // So that they are redacted, and clients with other values get instances of their own.
    expect(variables).toEqual(['OWNER', 'TOKEN']);
    expect(references).toEqual({ OWNER: 'ada', TOKEN: 'hunter2' });
  });

  test('have no form of their own without these keys', () => {
    expect(loadServer('servers: { a: { command: x, tools: { deny: [a] } } }').shapes).toBeUndefined();
  });

  test('keep the server from running if a variable is missing, and the problem is at the value', () => {
    const { spec, problem } = loadServer(SHAPED);
    expect(spec).toBeUndefined();
    expect(problem).toMatchObject({
      message: 'servers.github.tools.params.search.set.owner: the environment variable OWNER is not set',
      line: 11,
      column: 25,
    });
  });

  test('differ for clients with other variables', () => {
    const server = loadServer(SHAPED, { env: { OWNER: 'ada' } });
    expect(variantOf(server, { environment: { OWNER: 'bob' }, folder: '' })).not.toBe(variantOf(server));
  });

  test('may change while the server runs', () => {
    const env = { OWNER: 'ada' };
    const before = loadServer(SHAPED, { env });
    const now = { ...before, shapes: { ...before.shapes, rename: { search: 'find' } } };
    expect(changeOf(before, now)).toBe('adjusted');
  });

  test.each([
    ['rename: { a: "b c" }', 'servers.a.tools.rename.a: this name cannot be used; expected up to 64 letters'],
    ['rename: { a: 1 }', 'servers.a.tools.rename.a: found a number; expected the new name of the tool'],
    ['describe: { a: 1 }', 'servers.a.tools.describe.a: found a number; expected a text, or a map with `append`'],
    ['params: { a: { set: [x] } }', 'servers.a.tools.params.a.set: found a list; expected a map of parameters'],
    ['params: { a: { hid: [x] } }', 'unknown key `hid`'],
  ])('are refused with a mistake: %s', (tools, expected) => {
    const [problem] = problemsOf(`servers:\n  a:\n    command: x\n    tools: { ${tools} }\n`);
    expect(problem).toContain(expected);
  });
});
