import type { Peer } from '../../support/differential/peer.js';
import { answer, call, calling, hear, input, meta, request, type Scripts, say } from './scripts.js';

const DONE = answer('{"content":[]}');
const SAMPLING = 'sampling/createMessage';
const ELICITATION = 'elicitation/create';
const ROOTS = 'roots/list';

const FORM =
  '"method":"elicitation/create","params":{"requestedSchema":{"required":["a"],"properties":{"a":{"type":"string","enum":["x"],"enumNames":["X"],"default":"\\u0078"},"n":{"type":"number","minimum":-0,"maximum":9007199254740993},"o":{"type":"array","items":{"anyOf":[{"const":"1","title":"One"}]}}},"type":"object","$schema":"x"},"message":"S\\u0075re?","mode":"form","vendor":1.0}';
const SAMPLE =
  '"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"\\u0041"}}],"maxTokens":1e2}';

/** The server asks in a call, and the client answers with this text; `@id@` stands for the id of the request. */
function asked(method: string, rest: string, reply: string, id = '"q-1"') {
  return async (client: Peer) => {
    await client.tell(call(client, [...input(id, rest), DONE]));
    await client.answer(method, reply);
    await client.answerTo('1');
  };
}

/** Requests of servers to their client, with the answers. */
export const SERVER_REQUESTS: Scripts = {
  'for a message of the model, with tools': asked(
    SAMPLING,
    '"vendor":1,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":[{"type":"text","text":"\\ud83d"},{"type":"tool_result","toolUseId":"t","content":[],"structuredContent":{"n":1.0}}]}],"tools":[{"name":"a__b","inputSchema":{"type":"object"},"vendor":-0}],"toolChoice":{"mode":"required"},"includeContext":"thisServer","temperature":0.50,"metadata":{"k":1,"k":2},"modelPreferences":{"hints":[{"name":"x"}],"costPriority":1e-1},"_meta":{"vendor/x":[]},"maxTokens":9007199254740993}',
    '{"result":{"content":[{"type":"tool_use","id":"t","name":"a__b","input":{"n":1.0}}],"stopReason":"toolUse","role":"assistant","model":"m\\u006fdel","_meta":{"k":1e400}},"vendor":1.0,"id":@id@,"jsonrpc":"2.0"}',
  ),
  'for a message of the model, and the client refuses': asked(
    SAMPLING,
    SAMPLE,
    '{"jsonrpc":"2.0","id":@id@,"error":{"data":{"n":1.0,"n":2},"message":"n\\u006f","code":-1,"vendor":null}}',
  ),
  'a person, who fills the form': asked(
    ELICITATION,
    FORM,
    '{"jsonrpc":"2.0","id":@id@,"result":{"content":{"n":9007199254740993,"a":"\\u0078","b":1.0,"o":["1"]},"action":"accept","vendor":[]}}',
  ),
  'a person, who declines': asked(ELICITATION, FORM, '{"jsonrpc":"2.0","id":@id@,"result":{"action":"decline"}}'),
  'a person, who cancels': asked(
    ELICITATION,
    FORM,
    '{ "jsonrpc" : "2.0" , "result" : { "content" : null , "action" : "cancel" } , "id" : @id@ }',
  ),
  'a person, without a word on the mode': asked(
    ELICITATION,
    '"params":{"message":"","requestedSchema":{"type":"object","properties":{}}},"method":"elicitation\\/create"',
    '{"jsonrpc":"2.0","id":@id@,"result":{"action":"accept","content":{}}}',
  ),
  'a person to visit a URL, and says when it was done': async (client) => {
    const params = '{"url":"https:\\/\\/a.test\\/?x=1","elicitationId":"e-1","message":"m","mode":"url","vendor":1.0}';
    const complete = (id: string) =>
      say(
        `{"params":{"vendor":1.0,"elicitationId":"${id}"},"method":"notifications/elicitation/complete","jsonrpc":"2.0"}`,
      );
    const steps = input('"q"', `"method":"elicitation/create","params":${params}`);
    await client.tell(call(client, [...steps, complete('e-1'), DONE, complete('e-2')]));
    await client.answer(ELICITATION, '{"jsonrpc":"2.0","id":@id@,"result":{"action":"accept"}}');
    await client.answerTo('1');
    for (let times = 0; times < 2; times += 1) await client.next('notifications/elicitation/complete');
  },
  'for the roots': asked(
    ROOTS,
    '"method":"roots/list"',
    '{"jsonrpc":"2.0","id":@id@,"result":{"roots":[{"uri":"file:\\/\\/\\/a%20b","name":"\\u0041","_meta":{"k":-0},"vendor":1.0}],"vendor":[]}}',
  ),
  'for the roots, of which there are none': asked(
    ROOTS,
    '"method":"roots/list","params":{"_meta":{"k":[]}}',
    '{"jsonrpc":"2.0","id":@id@,"result":{"roots":[]}}',
  ),
  'under ids of every kind': async (client) => {
    for (const id of ['0', '-1', '9007199254740993', '1.0', '1e3', '""', '"1"', '"a\\u0062\\/"', '"é😀"', '1']) {
      await asked(SAMPLING, SAMPLE, '{"jsonrpc":"2.0","id":@id@,"result":{"n":1.0}}', id)(client);
    }
  },
  'for the result that is empty, null, or none that MCP knows': async (client) => {
    for (const result of ['{}', 'null', '[]', '1.0', '"\\u0041"', '{"action":"vendor","content":[1.0]}']) {
      await asked(SAMPLING, SAMPLE, `{"jsonrpc":"2.0","id":@id@,"result":${result}}`)(client);
    }
  },
  'two things at once, answered in the opposite order': async (client) => {
    const ask = (id: string, rest: string) => say(`{"jsonrpc":"2.0","id":${id},${rest}}`);
    const heard = (id: string) => ['hear', `answer ${id}`] as const;
    await client.tell(call(client, [ask('7', SAMPLE), ask('"7"', FORM), heard('"7"'), heard('7'), DONE]));
    const [first, second] = [await client.next(SAMPLING), await client.next(ELICITATION)];
    await client.reply(second, '{"jsonrpc":"2.0","id":@id@,"result":{"action":"accept"}}');
    await client.reply(first, '{"jsonrpc":"2.0","id":@id@,"result":{"model":"m"}}');
    await client.answerTo('1');
  },
  'something that takes long, and receives progress': async (client) => {
    const meta = '"params":{"messages":[],"maxTokens":1,"_meta":{"k":1.0,"progressToken":"p\\u0031"}}';
    await client.tell(call(client, [...input('1', `"method":"sampling/createMessage",${meta}`), DONE]));
    const asks = await client.next(SAMPLING);
    for (const progress of ['1', '1.50', '2e0']) {
      await client.reply(
        asks,
        `{"params":{"vendor":1.0,"progress":${progress},"progressToken":@token@,"total":null},"method":"notifications/progress","jsonrpc":"2.0"}`,
      );
    }
    await client.reply(asks, '{"jsonrpc":"2.0","id":@id@,"result":{}}');
    await client.answerTo('1');
  },
  'something that it cancels': async (client) => {
    await client.tell(
      call(client, [
        say(`{"jsonrpc":"2.0","id":"q",${FORM}}`),
        hear('notifications/vendor/go'),
        say(
          '{"vendor":1.0,"method":"notifications/cancelled","params":{"reason":"t\\u006fo late","requestId":"q","_meta":{}},"jsonrpc":"2.0"}',
        ),
        DONE,
      ]),
    );
    await client.next(ELICITATION);
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/go"}');
    await client.next('notifications/cancelled');
    await client.answerTo('1');
  },
  'whether it is there': calling(...input('"p\\u0069ng"', '"method":"ping"'), ...input('1.0', '"method":"ping"'), DONE),
  'while it gets a prompt, reads a resource, completes, and for a method of the vendor': async (client) => {
    const told = meta([...input('"q"', SAMPLE), answer('{"n":1.0,"messages":[],"contents":[]}')]);
    const requests = [
      request('prompts/get', `"name":"${client.name('play')}",${told}`),
      request('resources/read', `"uri":"odd://things/1",${told}`),
      request('completion/complete', `"ref":{"type":"ref/resource","uri":"odd://made/{what}"},${told}`),
      request('vendor/do', told),
    ];
    for (const text of requests) {
      await client.tell(text);
      await client.answer(SAMPLING, '{"jsonrpc":"2.0","id":@id@,"result":{}}');
      await client.answerTo('1');
    }
  },
  'between log messages, which stay in their places': async (client) => {
    const log = (data: string) =>
      say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":${data}}}`);
    const steps = [log('1.0'), ...input('"a"', SAMPLE), log('2.0'), ...input('"b"', FORM), log('3.0'), DONE];
    await client.tell(call(client, steps));
    await client.answer(SAMPLING, '{"jsonrpc":"2.0","id":@id@,"result":{}}');
    await client.answer(ELICITATION, '{"jsonrpc":"2.0","id":@id@,"result":{"action":"decline"}}');
    await client.answerTo('1');
  },
  'and before it answers, the client calls again': async (client) => {
    await client.tell(call(client, [...input('"q"', SAMPLE), DONE], '1'));
    const asks = await client.next(SAMPLING);
    await client.ask(call(client, [answer('{"content":[],"inner":1.0}')], '2'));
    await client.reply(asks, '{"jsonrpc":"2.0","id":@id@,"result":{}}');
    await client.answerTo('1');
  },
  'while two calls are in flight, in the latest of them': async (client) => {
    const ready = say('{"jsonrpc":"2.0","method":"notifications/vendor/ready"}');
    await client.tell(call(client, [ready, hear('notifications/vendor/go'), DONE], '1'));
    await client.next('notifications/vendor/ready');
    await client.tell(call(client, [...input('"q"', SAMPLE), DONE], '2'));
    await client.answer(SAMPLING, '{"jsonrpc":"2.0","id":@id@,"result":{}}');
    await client.answerTo('2');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/go"}');
    await client.answerTo('1');
  },
  'with a million characters, and is answered with as many': async (client) => {
    const params = '"params":{"messages":[],"maxTokens":1,"systemPrompt":"@long:1000000@"}';
    await client.tell(call(client, [...input('1', `"method":"sampling/createMessage",${params}`), DONE]));
    await client.answer(SAMPLING, `{"jsonrpc":"2.0","id":@id@,"result":{"model":"${'y'.repeat(1_000_000)}"}}`);
    await client.answerTo('1');
  },
  'for the roots when no call is in flight': async (client) => {
    await client.ask(
      call(client, [
        DONE,
        ...input('"q"', '"method":"roots/list"'),
        say('{"jsonrpc":"2.0","method":"notifications/vendor/heard"}'),
      ]),
    );
    await client.answer(ROOTS, '{"jsonrpc":"2.0","id":@id@,"result":{"roots":[],"n":1.0}}');
    await client.next('notifications/vendor/heard');
  },
  'for the roots when no call is in flight, and it is cancelled': async (client) => {
    const withdraw = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}';
    await client.ask(
      call(client, [
        DONE,
        say('{"jsonrpc":"2.0","id":"q","method":"roots/list"}'),
        hear('notifications/vendor/go'),
        say(withdraw),
      ]),
    );
    await client.next(ROOTS);
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/go"}');
    await client.next('notifications/cancelled');
  },
};
