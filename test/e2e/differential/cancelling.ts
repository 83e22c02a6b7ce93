import { answer, call, callWithProgress, hear, meta, request, type Scripts, say } from './scripts.js';

const READY = say('{"jsonrpc":"2.0","method":"notifications/vendor/ready"}');
const CANCELLED = hear('notifications/cancelled');

/** Requests that their client cancels. */
export const CANCELLING: Scripts = {
  'a call, with a reason and more': async (client) => {
    await client.tell(call(client, [READY, CANCELLED], '"a\\u0062"'));
    await client.next('notifications/vendor/ready');
    await client.tell(
      '{"vendor":1.0,"params":{"reason":"en\\u006fugh","x":1,"x":2,"requestId":"a\\u0062","_meta":{}},"method":"notifications/cancelled","jsonrpc":"2.0"}',
    );
  },
  'a call that reports progress': async (client) => {
    const progress = say(
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@token@,"progress":1}}',
    );
    await client.tell(callWithProgress(client, '"t"', [progress, CANCELLED], '5'));
    await client.next('notifications/progress');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}');
  },
  'one of two calls': async (client) => {
    const steps = [READY, hear('notifications/vendor/go'), answer('{"content":[]}')];
    await client.tell(call(client, [READY, CANCELLED], '1'));
    await client.next('notifications/vendor/ready');
    await client.tell(call(client, steps, '2'));
    await client.next('notifications/vendor/ready');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":""}}');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/go"}');
    await client.answerTo('2');
  },
  'a call, and then another with the same id': async (client) => {
    await client.tell(call(client, [READY, CANCELLED], '1'));
    await client.next('notifications/vendor/ready');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}');
    await client.ask(call(client, [answer('{"content":[],"second":1.0}')], '1'));
  },
  'a prompt, a resource and a method of the vendor': async (client) => {
    const told = meta([READY, CANCELLED]);
    const requests = [
      request('prompts/get', `"name":"${client.name('play')}",${told}`),
      request('resources/read', `"uri":"odd://things/1",${told}`),
      request('vendor/do', told),
    ];
    for (const text of requests) {
      await client.tell(text);
      await client.next('notifications/vendor/ready');
      await client.tell('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}');
    }
  },
  'a call for which the server sends a request, which it cancels': async (client) => {
    await client.tell(
      call(client, [
        say(
          '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}',
        ),
        CANCELLED,
        say(
          '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q","reason":"t\\u006fo","vendor":1.0}}',
        ),
      ]),
    );
    await client.next('elicitation/create');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}');
    await client.next('notifications/cancelled');
  },
};
