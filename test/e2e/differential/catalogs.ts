import { tokenAt } from '../../fixtures/servers/odd/raw-json.mjs';
import type { ListMethod, Peer } from '../../support/differential/peer.js';
import { answer, call, fail, meta, request, type Scripts, type Step, say } from './scripts.js';

const DONE = answer('{"content":[]}');

/** The server changes one of its lists and says so; the client reads it again. */
function changing(kind: string, method: ListMethod, announcement: string, entries: readonly string[]) {
  return async (client: Peer) => {
    await client.list(method);
    const change: Step[] = [['list', kind, entries], say(`{"jsonrpc":"2.0","method":"${announcement}"}`), DONE];
    await client.ask(call(client, change));
    await client.next(announcement);
    await client.list(method);
  };
}

const PLAY = '{"name":"play","inputSchema":{"type":"object"}}';

/** Lists of servers, and uses of their entries. */
export const CATALOGS: Scripts = {
  'list tools, in every notation': async (client) => {
    await client.list('tools/list');
  },
  'list prompts, in every notation': async (client) => {
    await client.list('prompts/list');
  },
  'list resources, in every notation': async (client) => {
    await client.list('resources/list');
  },
  'list templates, in every notation': async (client) => {
    await client.list('resources/templates/list');
  },
  'get a prompt without arguments': async (client) => {
    await client.ask(request('prompts/get', `"name":"${client.name('play')}",${meta([answer('{"messages":[]}')])}`));
  },
  'get a prompt with arguments, and a result in unusual notation': async (client) => {
    const result =
      '{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"odd:\\/\\/x","text":"\\u0041"},"vendor":1.0}},{"content":{"type":"image","data":"AA==","mimeType":"image/png"},"role":"assistant","vendor":[]},{"role":"user","content":{"text":"\\u0041","type":"text"}}],"description":"\\ud83d","_meta":{"k":1,"k":2},"vendor":-0}';
    const args = '"vendor":1.0,"arguments":{"city":"Z\\u00fcrich","any":""}';
    await client.ask(
      request('prompts/get', `${args},"name":"${client.name('with-arguments')}",${meta([answer(result)])}`),
    );
  },
  'get a prompt that lacks an argument': async (client) => {
    const error = fail('{"code":-32602,"message":"missing","data":{"city":1.0}}');
    await client.ask(request('prompts/get', `"name":"${client.name('with-arguments')}",${meta([error])}`));
  },
  'complete an argument of a prompt': async (client) => {
    const result = answer(
      '{"completion":{"values":["\\u0041","b"],"hasMore":true,"total":1e2,"vendor":1.0},"_meta":{}}',
    );
    await client.ask(
      request(
        'completion/complete',
        `"context":{"arguments":{"any":"\\u0041"},"vendor":1.0},"ref":{"title":"A title","vendor":1.0,"name":"${client.name('with-arguments')}","type":"ref/prompt"},"argument":{"value":"Z","name":"city","vendor":-0},${meta([result])}`,
      ),
    );
  },
  'complete a variable of a template': async (client) => {
    const result = answer('{"completion":{"values":[]}}');
    const ref = '"ref":{"uri":"odd:\\/\\/made\\/{what}","type":"ref/resource"}';
    await client.ask(request('completion/complete', `${ref},"argument":{"name":"what","value":""},${meta([result])}`));
  },
  'complete what cannot be completed': async (client) => {
    const error = fail('{"code":-32602,"message":"no","data":null}');
    await client.ask(
      request('completion/complete', `"ref":{"type":"ref/resource","uri":"odd://things/1"},${meta([error])}`),
    );
  },
  'read a listed resource, with a result in unusual notation': async (client) => {
    const result =
      '{"contents":[{"uri":"odd:\\/\\/things\\/2","text":"\\u0041\\ud83d","mimeType":"text\\/plain","_meta":{"k":1.0},"vendor":-0},{"blob":"AA==","uri":"odd://things/2#part"},{"uri":"ui://x/y","text":"","vendor":{}}],"_meta":{"k":1,"k":2},"vendor":1e400}';
    await client.ask(request('resources/read', `"vendor":1.0,"uri":"odd://things/2",${meta([answer(result)])}`));
  },
  'read resources by templates': async (client) => {
    const result = meta([answer('{"contents":[]}')]);
    for (const uri of ['odd:\\/\\/made\\/\\u0061%20b', 'file:///home/été/a b', 'file:///a?b#c']) {
      await client.ask(request('resources/read', `"uri":"${uri}",${result}`));
    }
  },
  'read a resource that nothing fits': async (client) => {
    const error = fail(
      '{"code":-32002,"message":"Resource not found","data":{"uri":"odd://n\\u006fthing","vendor":1.0}}',
    );
    await client.ask(request('resources/read', `"uri":"odd://nothing",${meta([error])}`));
    await client.ask(request('resources/read', `"uri":"else://where",${meta([error])}`));
  },
  'subscribe to a resource, hear of updates, and unsubscribe': async (client) => {
    const updated = (params: string) =>
      say(`{"vendor":1.0,"params":${params},"method":"notifications/resources/updated","jsonrpc":"2.0"}`);
    await client.ask(request('resources/subscribe', '"uri":"odd://things/1"'));
    await client.ask(
      call(client, [
        updated('{"uri":"odd:\\/\\/things\\/1","title":"\\u0041","n":1,"n":2.0}'),
        updated('{"_meta":{"k":-0},"uri":"odd://things/1/part"}'),
        DONE,
        updated('{"uri":"odd://things/1"}'),
      ]),
    );
    for (let times = 0; times < 3; times += 1) await client.next('notifications/resources/updated');
    await client.ask(request('resources/unsubscribe', '"uri":"odd://things/1"'));
  },
  'subscribe with more than MCP knows': async (client) => {
    const answered = answer('{"_meta":{"k":1.0},"vendor":-0}');
    await client.ask(
      `{"vendor":1.0,"params":{"n":1,"n":2,"uri":"odd:\\/\\/things\\/2",${meta([answered])}},"method":"resources/subscribe","id":"s","jsonrpc":"2.0"}`,
    );
    await client.ask(request('resources/unsubscribe', `"n":1.0,"uri":"odd:\\/\\/things\\/2",${meta([answered])}`));
  },
  'unsubscribe from what it never subscribed to': async (client) => {
    const error = fail('{"code":-32602,"message":"not subscribed"}');
    await client.ask(request('resources/unsubscribe', `"uri":"odd://things/1",${meta([error])}`));
  },
  'subscribe to a resource, and hear of progress until it is': async (client) => {
    const steps = JSON.stringify([
      say('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0,"progressToken":@token@}}'),
      answer('{}'),
    ]);
    const uri = '"uri":"file:///a"';
    await client.ask(request('resources/subscribe', `${uri},"_meta":{"progressToken":"t","odd/steps":${steps}}`));
    await client.ask(request('resources/unsubscribe', uri));
  },
  'subscribe to a resource, and the server refuses': async (client) => {
    const error = fail('{"data":{"n":1.0},"message":"n\\u006f","code":-32002,"vendor":[]}');
    await client.ask(request('resources/subscribe', `"uri":"odd://things/1",${meta([error])}`));
  },
  'hear of tools that come and go': changing('tools', 'tools/list', 'notifications/tools/list_changed', [
    PLAY,
    '{"inputSchema":{"type":"object"},"name":"new"}',
    '{"description":"\\u0041","name":"other","vendor":1.0,"inputSchema":{"type":"object"}}',
  ]),
  'hear of prompts that come and go': changing('prompts', 'prompts/list', 'notifications/prompts/list_changed', [
    '{"name":"play","vendor":1.0}',
  ]),
  'hear of resources that come and go': changing(
    'resources',
    'resources/list',
    'notifications/resources/list_changed',
    ['{"name":"new","uri":"odd://new","vendor":1.0}'],
  ),
  'hear of templates that come and go': changing(
    'templates',
    'resources/templates/list',
    'notifications/resources/list_changed',
    [],
  ),
  'list and call a tool whose name is written with escapes': {
    on: ['directly', 'over HTTP', 'over HTTP to its own endpoint'],
    because: 'a name with a prefix is a new one, which is written without escapes',
    play: async (client) => {
      const entries = [PLAY, '{"name":"sp\\u0065lt","inputSchema":{"type":"object"}}'];
      await changing('tools', 'tools/list', 'notifications/tools/list_changed', entries)(client);
      await client.ask(request('tools/call', '"name":"spelt"'));
      await client.ask(request('tools/call', '"name":"sp\\u0065lt"'));
    },
  },
  'call tools by names that models would refuse': async (client) => {
    const announcement = 'notifications/tools/list_changed';
    const entries = ODD_NAMES.map((name) => `{"name":"${name}","title":"odd","inputSchema":{"type":"object"}}`);
    await client.read('tools/list');
    await client.ask(
      call(client, [['list', 'tools', [PLAY, ...entries]], say(`{"jsonrpc":"2.0","method":"${announcement}"}`), DONE]),
    );
    await client.next(announcement);
    // The gateway chooses their names here, but the server has to hear its own.
    for (const entry of await client.read('tools/list')) {
      if (tokenAt(entry, ['title']) !== '"odd"') continue;
      await client.ask(request('tools/call', `"name":${tokenAt(entry, ['name'])}`));
    }
  },
};

const ODD_NAMES = ['get.it', 'schön', 'with space', 'long'.repeat(20), 'a__b', '😀'];
