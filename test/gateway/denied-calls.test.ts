import { describe, expect, it } from 'vitest';
import { callRules, offering, type ServerScript, startGateway, toolOf, type Who } from '../support/scripted-gateway.js';
import { flush, type Message } from '../support/wire.js';

const TOOLS = ['read', 'copy', 'push', 'open', 'port', 'guarded', 'delete_all', 'plain'];

/** A server with rules. Every attempt below is one that they deny. */
const RULED: ServerScript = {
  ...offering({
    prompts: ['secret', 'letter'],
    resources: ['file:///etc/passwd', 'file:///home/me/a'],
    templates: ['file:///{path}'],
    capabilities: {
      tools: {},
      prompts: {},
      resources: { subscribe: true },
      tasks: { requests: { tools: { call: {} } } },
    },
  }),
  tools: [...TOOLS, toolOf('shaped'), toolOf('tasked', { execution: { taskSupport: 'optional' } })],
  methods: ['files/*'],
  shapes: { rename: { delete_all: 'tidy' }, params: { shaped: { set: { path: '/etc/shadow' } } } },
  rules: [
    { tools: ['delete_*'], verdict: 'deny', say: 'Nothing is deleted here' },
    { tools: ['read', 'shaped', 'tasked'], args: { path: ['/etc/**'] }, verdict: 'deny' },
    { tools: ['copy'], args: { 'files[].path': ['/etc/**', null] }, verdict: 'deny' },
    { tools: ['push'], args: { repo: ['!acme/*'] }, verdict: 'deny', say: 'Only repositories of acme' },
    { tools: ['open'], args: { url: ['http://intern.example/**'] }, verdict: 'deny' },
    { tools: ['port'], args: { port: [22], 'options.force': [true, null] }, verdict: 'deny' },
    { tools: ['guarded'], args: { path: ['/home/me/**'], mode: ['read', null] }, verdict: 'allow' },
    { tools: ['guarded'], verdict: 'deny' },
    { uris: ['file:///etc/**'], verdict: 'deny' },
    { prompts: ['secret'], verdict: 'deny' },
    { prompts: ['letter'], args: { to: ['boss'] }, verdict: 'deny' },
  ],
};

const call = (name: string, args: string) => `"method":"tools/call","params":{"name":"a__${name}","arguments":${args}}`;
const read = (uri: string) => `"method":"resources/read","params":{"uri":${JSON.stringify(uri)}}`;

const ATTEMPTS: readonly string[] = [
  // By the name.
  call('tidy', '{}'),
  call('tidy', 'null'),
  '"method":"tools/call","params":{"name":"a__tidy"}',
  '"method":"tools/call","params":{"name":"a__\\u0074idy","arguments":{}}',
  '"method":"tools/call","params":{"name":"a__delete_all","arguments":{}}',
  '"method":"tools/call","params":{"name":"a__DELETE_ALL","arguments":{}}',
  '"method":"tools/call","params":{"name":["a__tidy"],"arguments":{}}',
  '"method":"tools/call","params":{"name":"a__plain","Name":"delete_all","arguments":{}}',
  '"method":"tools/call","params":{"name":"a__plain","name":"a__tidy","arguments":{}}',
  // By encodings of a path.
  call('read', '{"path":"/etc/passwd"}'),
  call('read', '{"path":"/etc"}'),
  call('read', '{"path":"/etc/"}'),
  call('read', '{"path":"\\u002fetc\\u002fpasswd"}'),
  call('read', '{"\\u0070ath":"/etc/passwd"}'),
  call('read', '{"path":"//etc//passwd"}'),
  call('read', '{"path":"/etc/./passwd"}'),
  call('read', '{"path":"/tmp/../etc/passwd"}'),
  call('read', '{"path":"../../../../etc/passwd"}'),
  call('read', '{"path":"x/../../etc/passwd"}'),
  call('read', '{"path":"/ETC/passwd"}'),
  call('read', '{"path":"\\\\etc\\\\passwd"}'),
  call('read', '{"path":"/%65tc/passwd"}'),
  call('read', '{"path":"/tmp/%2e%2e/etc/passwd"}'),
  call('read', '{"path":"%2Fetc%2Fpasswd%zz"}'),
  call('read', '{"path":"/etc/passwd\\u0000.txt"}'),
  call('read', '{"path":"\uff0fetc\uff0fpasswd"}'),
  call('read', `{"path":"/tmp/${'./'.repeat(5_000)}../etc/passwd"}`),
  // By the form of the arguments.
  call('read', '{"path":"/home/a","path":"/etc/passwd"}'),
  call('read', '{"path":"/etc/passwd","path":"/home/a"}'),
  call('read', '{"Path":"/etc/passwd"}'),
  call('read', '{"path":"/home/a","PATH":"/etc/passwd"}'),
  call('read', '{"path\\u0000":"/etc/passwd"}'),
  call('read', '{"\uff50ath":"/etc/passwd"}'),
  call('read', '{"path":["/home/a","/etc/passwd"]}'),
  call('read', '{"path":{"value":"/etc/passwd"}}'),
  call('read', '{"path":"[\\"/etc/passwd\\"]"}'),
  call('read', '[{"path":"/etc/passwd"}]'),
  call('read', '"{\\"path\\":\\"/etc/passwd\\"}"'),
  '"method":"tools/call","params":{"name":"a__read","arguments":{"path":"/home/a"},"Arguments":{"path":"/etc/passwd"}}',
  '"method":"tools/call","params":{"name":"a__read","arguments":{},"arguments":{"path":"/etc/passwd"}}',
  call('copy', '{"files":[{"path":"/home/a"},{"path":"/etc/passwd"}]}'),
  call('copy', '{"files":{"path":"/etc/passwd"}}'),
  call('copy', '{"files":[[{"path":"/etc/passwd"}]]}'),
  call('copy', '{"files":"[{\\"path\\":\\"/etc/passwd\\"}]"}'),
  call('copy', '{"files":["/etc/passwd"]}'),
  call('copy', '{"files":[{"path":"/home/a"},{}]}'),
  call('copy', '{"files":[]}'),
  call('copy', '{}'),
  // By other values.
  call('push', '{"repo":"acme/../other/x"}'),
  call('push', '{"repo":"acme%2F..%2Fother/x"}'),
  call('push', '{"repo":["acme/x","other/x"]}'),
  call('open', '{"url":"HTTP://INTERN.EXAMPLE/x"}'),
  call('open', '{"url":"http://me:secret@intern.example:80/x"}'),
  call('open', '{"url":" http:\\\\\\\\intern.example\\\\x"}'),
  call('port', '{"port":22,"options":{"force":true}}'),
  call('port', '{"port":2.2e1,"options":"{\\"force\\":true}"}'),
  call('port', '{"port":"22"}'),
  call('guarded', '{"path":"/home/me/../you/a"}'),
  call('guarded', '{"path":["/home/me/a","/home/you/a"]}'),
  call('guarded', '{"path":"/home/me/a","mode":"write"}'),
  call('guarded', '{}'),
  call('shaped', '{}'),
  call('shaped', '{"path":"/home/a"}'),
  '"method":"tools/call","params":{"name":"a__tasked","arguments":{"path":"/etc/passwd"},"task":{"ttl":1000}}',
  // Resources and prompts.
  read('file:///etc/passwd'),
  read('FILE:///etc/passwd'),
  read('file://localhost/etc/passwd'),
  read('file:/etc/passwd'),
  read('file:///home/../etc/passwd'),
  read('file:///%65tc/passwd'),
  read('file:///home/..%2fetc/passwd'),
  '"method":"resources/read","params":{"name":"x","uri":"file:///etc/passwd"}',
  '"method":"resources/read","params":{"name":"file:///home/me/a","uri":"file:///etc/passwd"}',
  '"method":"files/get","params":{"name":"x","uri":"file:///etc/passwd"}',
  '"method":"files/get","params":{"uri":"file:///etc/passwd"}',
  '"method":"files/get","params":{"uri":["file:///etc/passwd"]}',
  '"method":"prompts/get","params":{"name":"a__secret"}',
  '"method":"prompts/get","params":{"name":"a__letter","arguments":{"to":"Boss"}}',
];

const META = JSON.stringify({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'm', version: '0' },
});

interface Way {
  readonly who?: Who;
  readonly mode?: 'search';
  readonly isModern?: boolean;
  readonly as: (line: string) => string;
}

/** Lines of a client by a way to the server, with the names that the client uses there. */
const WAYS: Readonly<Record<string, Way>> = {
  'a list of all tools': { as: (line) => line },
  'the endpoint of the server': { who: { server: 'a' }, as: (line) => line.replaceAll('"a__', '"') },
  'a request without a session': {
    isModern: true,
    as: (line) => line.replace('"params":{', `"params":{"_meta":${META},`),
  },
  'the call_tool of search mode': {
    mode: 'search',
    as: (line) => {
      const [, params] = /^"method":"tools\/call","params":(.*)$/s.exec(line) ?? [];
      // Of other keys beside `name` and `arguments`, the call that is made has none.
      if (params === undefined || /"Name"|"Arguments"/.test(params)) return line;
      return `"method":"tools/call","params":{"name":"trunkline__call_tool","arguments":${params}}`;
    },
  },
};

async function ruled({ who = {}, mode, isModern = false }: Partial<Way> = {}, rules = RULED.rules ?? []) {
  const world = await startGateway({ servers: { a: { ...RULED, rules } }, ...(mode && { mode }) });
  const client = isModern ? world.connect(who) : world.connect(who).greet();
  let id = 0;
  const answerTo = async (line: string): Promise<Message> => {
    id += 1;
    client.say(`{"jsonrpc":"2.0","id":${id},${line}}`);
    await flush();
    return client.answerTo(id) ?? {};
  };
  const { child } = world.server('a');
  const used = () =>
    ['tools/call', 'resources/read', 'prompts/get', 'files/get'].flatMap((method) => child.asked(method));
  return { ...world, client, child, answerTo, used };
}

describe.each(Object.entries(WAYS))('a server with rules, through %s', (_, way) => {
  it.each(ATTEMPTS)('gets no denied request: %s', async (attempt) => {
    const { answerTo, used } = await ruled(way);
    const { result, error } = await answerTo(way.as(attempt));
    expect(used()).toEqual([]);
    expect(result?.isError === true || error !== undefined).toBe(true);
  });
});

describe('a server whose rules ask, without a way to ask', () => {
  it.each(ATTEMPTS)('gets none of the requests: %s', async (attempt) => {
    const asks = RULED.rules?.map((rule) => (rule.verdict === 'deny' ? { ...rule, verdict: 'ask' as const } : rule));
    const { answerTo, used } = await ruled({}, asks);
    await answerTo(attempt);
    expect(used()).toEqual([]);
  });
});

describe('a server with rules', () => {
  it.each([
    call('plain', '{"path":"/etc/passwd"}'),
    call('read', '{"path":"/home/etc/passwd"}'),
    call('read', '{ "path" : "/etcetera" , "other" : 1e2 }'),
    call('push', '{"repo":"acme/x"}'),
    call('push', '{}'),
    call('port', '{"port":22,"options":{"force":false}}'),
    call('guarded', '{"path":"/home/me/a","mode":"read"}'),
    call('guarded', '{"path":"/home/me"}'),
    read('file:///home/me/a'),
    '"method":"prompts/get","params":{"name":"a__letter","arguments":{"to":"you"}}',
  ])('gets a request that no rule denies: %s', async (line) => {
    const { answerTo, used } = await ruled();
    void answerTo(line);
    await flush();
    expect(used()).toHaveLength(1);
  });

  it('shows its denied tools, and answers their calls with a result that says why', async () => {
    const { answerTo } = await ruled();
    const { result } = await answerTo('"method":"tools/list"');
    expect(result.tools.map(({ name }: Message) => name)).toContain('a__tidy');
    const { result: denied } = await answerTo(call('push', '{"repo":"other/x"}'));
    expect(denied).toEqual({
      content: [
        {
          type: 'text',
          text: 'Server "a" was not asked, because a rule of the configuration denies this: Only repositories of acme. The same request will be denied again; another tool, or other arguments, may be allowed.',
        },
      ],
      isError: true,
      _meta: {
        'trunkline/failure': {
          reason: 'denied',
          code: 'TL-CALL-DENIED',
          server: 'a',
          generation: 1,
          sent: false,
          outcome: 'not_sent',
          rule: 'servers.a.rules[3]',
        },
      },
    });
  });

  it('answers a denied resource and a denied prompt with an error', async () => {
    const { answerTo } = await ruled();
    const rules = ['servers.a.rules[8]', 'servers.a.rules[9]'];
    const lines = [read('file:///etc/passwd'), '"method":"prompts/get","params":{"name":"a__secret"}'];
    for (const [at, line] of lines.entries()) {
      const { error } = await answerTo(line);
      expect(error).toMatchObject({ code: -32603, data: { reason: 'denied', rule: rules[at] } });
    }
  });

  it('says which keys of the arguments nobody can judge', async () => {
    const { answerTo } = await ruled();
    const { result } = await answerTo(call('read', '{"Path":"/home/a"}'));
    expect(result.content[0].text).toContain(
      'decides about the arguments, and some servers take the key "Path" for "path".',
    );
  });

  const text = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2));
  const KIB = 1_024;
  const numbers = (count: number) => `[${Array(count).fill(1).join()}]`;
  const keys = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":1`).join()}}`;
  const inText = (json: string) => JSON.stringify(json);

  it.each([
    ['a value larger than 64 KiB', call('read', `{"path":${text(64 * KIB + 1)}}`), '64 KiB'],
    ['a value too large in a list', call('copy', `{"files":[{"path":${text(64 * KIB + 1)}}]}`), '64 KiB'],
    ['a text too large for JSON', call('copy', `{"files":${inText(`[${text(64 * KIB)}]`)}}`), '64 KiB'],
    ['a key too large', call('read', `{${text(64 * KIB + 1)}:1}`), '64 KiB'],
    [
      'values larger than 1 MiB in all',
      call(
        'read',
        `{"path":[${Array(17)
          .fill(text(63 * KIB))
          .join()}]}`,
      ),
      '1 MiB',
    ],
    ['too many values', call('read', `{"path":${numbers(10_001)}}`), '10,000'],
    ['too many values in JSON', call('read', `{"path":${inText(numbers(10_001))}}`), '10,000'],
    ['too many elements', call('copy', `{"files":[${Array(10_001).fill('{}').join()}]}`), '10,000'],
    ['too many keys', call('port', `{"port":22,"options":${keys(10_001)}}`), '10,000'],
    [
      'a value too large for a rule that allows',
      call('guarded', `{"path":"/home/me/${'x'.repeat(64 * KIB)}"}`),
      '64 KiB',
    ],
  ])('gets no call with %s for its rule', async (_, attempt, limit) => {
    const { answerTo, used } = await ruled();
    const { result } = await answerTo(attempt);
    expect(used()).toEqual([]);
    expect(result.content[0].text).toContain('decides about the arguments, and ');
    expect(result.content[0].text).toContain(limit);
  });

  it.each([
    [
      'values at the limits',
      call(
        'read',
        `{"path":[${Array(15)
          .fill(text(64 * KIB))
          .join()},${text(KIB)}]}`,
      ),
    ],
    ['a large value beside that of its rule', call('read', `{"path":"/home/a","content":${text(2_048 * KIB)}}`)],
    ['large values beside those of its rule', call('copy', `{"files":[{"path":"/a","content":${text(2_048 * KIB)}}]}`)],
    ['a large value of which its rule names none', call('push', `{"content":${text(2_048 * KIB)}}`)],
    ['large values without a rule', call('plain', `{"path":${numbers(200_000)}}`)],
  ])('gets a call with %s', async (_, line) => {
    const { answerTo, used } = await ruled();
    void answerTo(line);
    await flush();
    expect(used()).toHaveLength(1);
  });

  it('gets no URI that is too long to compare, if a rule denies others', async () => {
    const { answerTo, used } = await ruled();
    const { error } = await answerTo(read(`file:///home/me/${'a'.repeat(65_536)}`));
    expect(used()).toEqual([]);
    expect(error.data).toMatchObject({ reason: 'denied', rule: 'servers.a.rules[8]' });
  });

  it('gets the arguments of an allowed call byte for byte', async () => {
    const { answerTo, child } = await ruled();
    const args = '{"path": "\\u002fhome\\/a" ,"big":12345678901234567890,"same":1,"same":2}';
    void answerTo(call('read', args));
    await flush();
    expect(child.received.lines.join('\n')).toContain(args);
  });
});

describe('a call that waits while the rules change', () => {
  const waiting = async () => {
    const world = await startGateway({ servers: { a: { tools: ['read'], limits: { concurrency: 1 } } } });
    const client = world.connect().greet();
    client.call(1, 'a__read', { arguments: { path: '/home/a' } });
    client.call(2, 'a__read', { arguments: { path: '/etc/passwd' } });
    await flush();
    const { backend, child } = world.server('a');
    expect(child.asked('tools/call')).toHaveLength(1);
    return { ...world, client, backend, child };
  };
  const RULES = [{ tools: ['read'], args: { path: ['/etc/**'] }, verdict: 'deny' as const }];

  it('is denied by the new rules of its server', async () => {
    const { client, backend, child } = await waiting();
    backend.configure({ ...backend.rules, callRules: callRules(RULES) });
    child.answer(0);
    await flush();
    expect(client.answerTo(2)?.result._meta['trunkline/failure']).toMatchObject({ reason: 'denied', sent: false });
    expect(child.asked('tools/call')).toHaveLength(1);
  });
});

describe('a client with a view', () => {
  const viewing = async (rules: Parameters<typeof callRules>[0], ofServer: ServerScript['rules'] = []) => {
    const views = [{ name: 'v', callRules: callRules(rules, true) }];
    const world = await startGateway({
      servers: { a: { tools: ['read', 'write'], rules: ofServer }, b: { tools: ['read'] } },
      views: { views, clients: [] },
    });
    const client = world.connect({ view: 'v' }).greet();
    const sent = async (name: string) => {
      client.call(name, name, { arguments: {} });
      await flush();
      return world.server(name.slice(0, 1)).child.asked('tools/call').length > 0;
    };
    return { ...world, client, sent };
  };

  it('is held by the rules of the view, by KEY__TOOL', async () => {
    const { sent, client } = await viewing([{ tools: ['a__*'], verdict: 'deny' }]);
    expect(await sent('a__read')).toBe(false);
    expect(await sent('b__read')).toBe(true);
    expect(client.answerTo('a__read')?.result._meta['trunkline/failure'].rule).toBe('views.v.rules[0]');
  });

  it('is denied what its server denies, also if the view allows it', async () => {
    const { sent } = await viewing([{ tools: ['*'], verdict: 'allow' }], [{ tools: ['write'], verdict: 'deny' }]);
    expect(await sent('a__write')).toBe(false);
    expect(await sent('a__read')).toBe(true);
  });

  it('is denied what the view denies, also if the server allows it', async () => {
    const { sent } = await viewing([{ tools: ['a__write'], verdict: 'deny' }], [{ tools: ['*'], verdict: 'allow' }]);
    expect(await sent('a__write')).toBe(false);
  });
});

describe.each(['legacy', 'modern'] as const)('a %s server whose call waits for input', (era) => {
  it('gets no denied arguments when the client comes back with its state and others', async () => {
    const capabilities = { elicitation: {} };
    const script = { hasBridge: true, isModern: era === 'modern', clientCapabilities: capabilities };
    const world = await startGateway({ servers: { a: { ...RULED, ...script } } });
    const { child } = world.server('a');
    const client = world.connect();
    const ask = async (id: number, path: string, more: Message = {}) => {
      client.modernRequest(id, 'tools/call', { name: 'a__read', arguments: { path }, ...more }, capabilities);
      await flush();
      return client.answerTo(id)?.result;
    };
    void ask(1, '/home/a');
    await flush();
    const question = { message: 'Sure?', requestedSchema: { type: 'object', properties: {} } };
    if (era === 'legacy') {
      child.say({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: question });
      await flush();
      world.clock.advance(15);
    } else {
      const inputRequests = { q: { method: 'elicitation/create', params: question } };
      child.answer(0, { resultType: 'input_required', inputRequests, requestState: 'mine' });
    }
    await flush();
    const { requestState, inputRequests } = client.answerTo(1)?.result ?? {};
    const keys = Object.keys(inputRequests);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, { action: 'accept', content: {} }]));
    await ask(2, '/etc/passwd', { requestState, inputResponses });
    expect(child.calls.map(({ params }) => params.arguments.path)).toEqual(['/home/a']);
    await ask(3, '/etc/passwd', { requestState: 'made up', inputResponses });
    expect(child.calls).toHaveLength(1);
    await ask(4, '/home/a', { requestState, inputResponses });
    expect(child.calls.every(({ params }) => params.arguments.path === '/home/a')).toBe(true);
  });
});
