// Entries of lists that the official schemas reject, or that only look odd.
import type { Message } from '../../support/wire.js';
import type { FieldClient } from '../legs.js';
import { type Play, tool } from '../play.js';
import { type Row, SOUND } from '../row.js';

const REJECTED = 'fails: the SDK rejects the answer';

/** The client that asks for the status then sees the process of the client before it. */
const entry = { sharing: 'profile' } as const;

/** A row for the clients of both generations. `second` has what is different with the second one. */
function both(row: Row, second: Partial<Row> = {}): Row[] {
  return [row, { ...row, sdk: 2, ...second }];
}

/** An odd tool that stays in the list, before a sound one. `fault` is what the status says about it. */
function odd(quirk: string, members: Message, fault: string): Row {
  return {
    quirk: `A tool ${quirk}`,
    right: 'The tool is listed without the malformed part, which the status names.',
    server: { tools: [tool('odd', members), tool('echo')] },
    entry,
    direct: REJECTED,
    through: 'tools: odd echo; echo: hello',
    status: new RegExp(`listed without a malformed part: odd \\(${fault.replace(/[[\].]/g, '\\$&')}\\)`),
  };
}

/** The second generation takes any value as the schema of a property. */
function oddProperty(quirk: string, schema: unknown): Row[] {
  const row = odd(
    `with a property whose schema is ${quirk}`,
    property(schema),
    'inputSchema.properties.p is not an object',
  );
  return both(row, { direct: 'tools: odd echo; echo: hello' });
}

/** The first generation compiles all output schemas when it lists tools, and has no list if one of them does not compile. */
function oddOutput(quirk: string, schema: Message, fault: string): Row {
  const outputSchema = { type: 'object', properties: { p: schema } };
  const row = odd(`whose output schema has ${quirk}`, { outputSchema }, `outputSchema ${fault.replace('$', '\\$')}`);
  return { ...row, direct: /^fails: / };
}

/** An odd tool that no client could use, before a sound one. `reason` is what the status says about it. */
function leftOut(quirk: string, first: unknown, reason: string): Row {
  return {
    quirk: `A tool ${quirk}`,
    right: 'The tool is left out, and the status names the member. All other tools work.',
    server: { tools: [first, tool('echo')] },
    entry,
    direct: REJECTED,
    through: SOUND,
    status: new RegExp(`not listed: (?:odd|#1) \\(${reason}`),
  };
}

/** A tool with one property. */
function property(schema: unknown): Message {
  return { inputSchema: { type: 'object', properties: { p: schema } } };
}

function root(members: Message): Message {
  return { inputSchema: { type: 'object', ...members } };
}

async function others(client: FieldClient): Promise<string> {
  return `${await client.prompts()}; ${await client.resources()}; ${await client.templates()}`;
}

/** Entries of the other lists, each beside a sound one. */
function listed(quirk: string, server: Play, through: string, status: RegExp): Row {
  const right = 'One malformed entry costs at most that entry.';
  const sound: Play = {
    prompts: [...(server.prompts ?? []), { name: 'p' }],
    resources: [...(server.resources ?? []), { name: 'r', uri: 'x:r' }],
    templates: [...(server.templates ?? []), { name: 't', uriTemplate: 'x:{t}' }],
  };
  return { quirk, right, server: sound, entry, ask: others, direct: REJECTED, through, status };
}

const [P, R, T] = ['prompts: p', 'resources: x:r', 'templates: x:{t}'];

/** Two servers with the same names, of which the first has no sound entries. */
const OWNS_NOTHING = {
  right: 'The entry that is left out owns no name, so the sound one of the other server is listed and works.',
  entry,
  status: /: up, 1 tool(?!.*not listed)/s,
} as const;

export const ENTRIES: readonly Row[] = [
  ...both({ quirk: 'A sound server', right: 'Its tools are listed and answer.' }),

  ...oddProperty('true', true),
  ...oddProperty('false', false),
  ...oddProperty('a text', 'string'),
  ...oddProperty('null', null),
  ...oddProperty('a number', 7),
  odd('with `properties: []`', root({ properties: [] }), 'inputSchema.properties is not an object'),
  odd('with `required: true`', root({ required: true }), 'inputSchema.required is not a list'),
  odd('with a number in `required`', root({ required: ['p', 1] }), 'inputSchema.required[1] is not a string'),
  odd('with `inputSchema: {}`', { inputSchema: {} }, 'inputSchema has no type "object"'),
  odd('with `inputSchema: []`', { inputSchema: [] }, 'inputSchema has no type "object"'),
  odd('whose schema has no type', { inputSchema: { properties: {} } }, 'inputSchema has no type "object"'),
  odd('whose schema has the type null', root({ type: null }), 'inputSchema has no type "object"'),
  odd('whose schema has a list of types', root({ type: ['object', 'null'] }), 'inputSchema has no type "object"'),
  odd('with annotations that are a list', { annotations: [] }, 'annotations is not an object'),
  odd(
    'with a hint that is a text',
    { annotations: { readOnlyHint: 'yes' } },
    'annotations.readOnlyHint is not true or false',
  ),
  odd(
    'with a title of annotations that is a number',
    { annotations: { title: 1 } },
    'annotations.title is not a string',
  ),
  odd('with icons that are an object', { icons: {} }, 'icons is not a list'),
  odd('with an icon that is a text', { icons: ['x:'] }, 'icons[0] is not an object'),
  odd('with an icon without `src`', { icons: [{}, { src: 'x:' }] }, 'icons[0].src is not a string'),
  odd(
    'with sizes of an icon that are a text',
    { icons: [{ src: 'x:', sizes: 'any' }] },
    'icons[0].sizes is not a list',
  ),
  odd('with an unknown theme', { icons: [{ src: 'x:', theme: 'blue' }] }, 'icons[0].theme is not "light" or "dark"'),
  odd('with `execution: true`', { execution: true }, 'execution is not an object'),
  odd(
    'with an unknown `taskSupport`',
    { execution: { taskSupport: 'no' } },
    'execution.taskSupport is not "required" or "optional" or "forbidden"',
  ),
  odd('with `_meta` that is a text', { _meta: 'x' }, '_meta is not an object'),
  odd('with `_meta: []`', { _meta: [] }, '_meta is not an object'),
  odd('with a title that is a number', { title: 1 }, 'title is not a string'),
  odd('with a description that is a list', { description: ['d'] }, 'description is not a string'),
  odd('with `outputSchema: true`', { outputSchema: true }, 'outputSchema is not an object'),
  odd('with `outputSchema: {}`', { outputSchema: {} }, 'outputSchema has no type "object"'),
  oddOutput('a pattern that is not valid', { pattern: '[' }, 'has the pattern "[", which is not valid'),
  oddOutput('a limit that is a text', { minimum: '1' }, 'has a malformed "minimum"'),
  oddOutput('`required: true`', { required: true }, 'has a malformed "required"'),
  oddOutput('`nullable` without a type', { nullable: true }, 'has a "nullable" that does not fit its type'),
  oddOutput('a reference to nothing', { $ref: '#/$defs/a' }, 'refers to "#/$defs/a", which it does not have'),
  oddOutput('an `id`, as draft 4 has it', { id: 'a' }, 'has a malformed "id"'),
  ...both({
    quirk: 'A tool with members that are null',
    right: 'A member that is null counts as absent.',
    server: {
      tools: [
        tool('odd', { title: null, description: null, annotations: { title: null }, icons: null, _meta: null }),
        tool('echo', { outputSchema: null, execution: null }),
      ],
    },
    direct: REJECTED,
    through: 'tools: odd echo; echo: hello',
  }),
  {
    quirk: 'A tool with a number that is too large for JavaScript',
    right: 'The number is replaced by the largest one.',
    sdk: 2,
    entry,
    server: {
      tools: [tool('odd', property({ maximum: '1e400' })), tool('echo')],
      line: (line) => line.replace('"1e400"', '1e400'),
    },
    direct: REJECTED,
    through: 'tools: odd echo; echo: hello',
    status: /odd \(inputSchema\.properties\.p has a number that is too large\)/,
  },
  leftOut('without a schema', { name: 'odd' }, 'inputSchema is not a schema of type "object"'),
  leftOut(
    'with `inputSchema: null`',
    { name: 'odd', inputSchema: null },
    'inputSchema is not a schema of type "object"',
  ),
  leftOut('with a schema that is a text', { name: 'odd', inputSchema: 'object' }, 'inputSchema is not a schema'),
  leftOut('with a schema of a list', { name: 'odd', inputSchema: { type: 'array' } }, 'inputSchema is not a schema'),
  leftOut(
    'whose output is a list',
    tool('odd', { outputSchema: { type: 'array' } }),
    'outputSchema is not a schema of type "object"',
  ),
  leftOut('without a name', { inputSchema: { type: 'object' } }, 'has no name'),
  leftOut('whose name is a number', { name: 7, inputSchema: { type: 'object' } }, 'has no name'),
  leftOut('that is a text', 'odd', 'is not an object'),
  leftOut('that is null', null, 'is not an object'),

  listed(
    'A prompt with an argument without a name',
    { prompts: [{ name: 'odd', arguments: [{}] }] },
    `${P}; ${R}; ${T}`,
    /odd \(arguments\[0\]\.name is not a string\)/,
  ),
  listed(
    'A prompt whose arguments are an object',
    { prompts: [{ name: 'odd', arguments: {} }] },
    `${P}; ${R}; ${T}`,
    /odd \(arguments is not a list\)/,
  ),
  listed(
    'A prompt with `required: "yes"`',
    { prompts: [{ name: 'odd', arguments: [{ name: 'a', required: 'yes' }] }] },
    `prompts: odd p; ${R}; ${T}`,
    /odd \(arguments\[0\]\.required is not true or false\)/,
  ),
  listed(
    'A resource without a name',
    { resources: [{ uri: 'x:odd' }] },
    `${P}; resources: x:odd x:r; ${T}`,
    /x:odd \(name is not a string\)/,
  ),
  listed('A resource without a URI', { resources: [{ name: 'odd' }] }, `${P}; ${R}; ${T}`, /#1 \(has no uri\)/),
  listed(
    'A resource with a size that is a text',
    { resources: [{ uri: 'x:odd', name: 'r', size: '7' }] },
    `${P}; resources: x:odd x:r; ${T}`,
    /x:odd \(size is not a number\)/,
  ),
  listed(
    'A resource with an unknown audience',
    { resources: [{ uri: 'x:odd', name: 'r', annotations: { audience: ['user', 'all'] } }] },
    `${P}; resources: x:odd x:r; ${T}`,
    /annotations\.audience\[1\] is not/,
  ),
  listed(
    'A resource with a priority above 1',
    { resources: [{ uri: 'x:odd', name: 'r', annotations: { priority: 5 } }] },
    `${P}; resources: x:odd x:r; ${T}`,
    /annotations\.priority is not a number from 0 to 1/,
  ),
  listed(
    'A resource with a date for a time',
    { resources: [{ uri: 'x:odd', name: 'r', annotations: { lastModified: '2025-01-01' } }] },
    `${P}; resources: x:odd x:r; ${T}`,
    /annotations\.lastModified is not a time/,
  ),
  listed(
    'A template with a list as its description',
    { templates: [{ uriTemplate: 'y:{t}', name: 't', description: [] }] },
    `${P}; ${R}; templates: y:{t} x:{t}`,
    /description is not a string/,
  ),
  listed(
    'A template without a name',
    { templates: [{ uriTemplate: 'y:{t}' }] },
    `${P}; ${R}; templates: y:{t} x:{t}`,
    /y:\{t\} \(name is not a string\)/,
  ),

  ...both({
    quirk: 'A malformed tool before the sound one of the same name',
    right: 'The sound one is listed.',
    server: { tools: [{ name: 'echo' }, tool('echo')] },
    entry,
    direct: REJECTED,
    through: SOUND,
    status: /not listed: *echo \(inputSchema is not a schema/,
  }),
  ...both({
    quirk: 'A malformed tool of an earlier server with the name of a sound one',
    before: { tools: [{ name: 'echo' }] },
    ...OWNS_NOTHING,
  }),
  ...both({
    quirk: 'A malformed prompt of an earlier server with the name of a sound one',
    before: { tools: [], prompts: [{ name: 'p', arguments: {} }] },
    server: { prompts: [{ name: 'p' }] },
    ask: (client) => client.prompts(),
    direct: P,
    ...OWNS_NOTHING,
  }),
  ...both({
    quirk: 'A malformed resource of an earlier server with the URI of a sound one',
    before: { tools: [], resources: [{ name: '\u200b', uri: 'x:r' }] },
    server: {
      resources: [{ name: 'r', uri: 'x:r' }],
      on: { 'resources/read': { contents: [{ uri: 'x:r', text: 'sound' }] } },
    },
    ask: async (asked) => {
      const resources = await asked.resources();
      const { contents } = await asked.get(asked.client.readResource({ uri: 'x:r' }));
      return `${resources}; ${JSON.stringify(contents)}`;
    },
    direct: `${R}; [{"uri":"x:r","text":"sound"}]`,
    ...OWNS_NOTHING,
  }),
];
