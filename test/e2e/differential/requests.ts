import { answer, call, callWithProgress, fail, hear, meta, request, type Scripts, say } from './scripts.js';

const DONE = answer('{"content":[]}');

/** Odd but legal words of a client's request. */
export const REQUESTS: Scripts = {
  'members in an order of their own': async (client) => {
    await client.ask(
      `{"params":{${meta([DONE])},"arguments":{"a":1},"name":"${client.name('play')}"},"method":"tools/call","id":1,"jsonrpc":"2.0"}`,
    );
  },
  'unknown members': async (client) => {
    await client.ask(
      `{"vendor":1.0,"jsonrpc":"2.0","id":1,"trace":{"id":2},"method":"tools/call","params":{"vendor":-0,"name":"${client.name('play')}",${meta([DONE])},"later":null}}`,
    );
  },
  'arguments that parsing and printing would change': async (client) => {
    await client.ask(
      request(
        'tools/call',
        `"arguments":{"n":[9007199254740993,1.0,-0,1e400,1E-400],"dup":1,"dup":2,"t":"\\u0041\\/\\ud83d","é":"\u2028\u2029😀","__proto__":1,"":{}},"name":"${client.name('play')}",${meta([DONE])}`,
      ),
    );
  },
  'no arguments, null, and some that are no object': async (client) => {
    for (const args of ['', ',"arguments":null', ',"arguments":{}', ',"arguments":[]', ',"arguments":1.0']) {
      await client.ask(request('tools/call', `"name":"${client.name('play')}",${meta([DONE])}${args}`));
    }
  },
  'ids of every kind': async (client) => {
    const ids = ['0', '-1', '9007199254740993', '1.0', '1e3', '""', '"1"', '"a\\u0062\\/"', '"é😀"', '"null"', '1'];
    for (const id of ids) await client.ask(call(client, [DONE], id));
  },
  'an id with an escaped key, after the params': async (client) => {
    await client.ask(
      `{"js\\u006fnrpc":"2.0","m\\u0065thod":"tools\\/call","params":{"n\\u0061me":"${client.name('play')}",${meta([DONE])}},"id":7}`,
    );
  },
  'an id again, once it was answered': async (client) => {
    for (let times = 0; times < 3; times += 1) await client.ask(call(client, [DONE], '"same"'));
  },
  'metadata of the vendor': async (client) => {
    await client.ask(
      request(
        'tools/call',
        `"name":"${client.name('play')}",${meta([DONE], ',"vendor.example/x":{"n":1.0,"n":2},"":null,"traceparent":"00-0-0-00"')}`,
      ),
    );
  },
  'a name written with escapes': {
    on: ['directly', 'over HTTP', 'over HTTP to its own endpoint'],
    because: 'a name with a prefix is replaced, and written without escapes',
    play: async (client) => {
      await client.ask(request('tools/call', `"name":"\\u0070lay",${meta([DONE])}`));
    },
  },
  'white space wherever it may be': async (client) => {
    await client.ask(
      `\t{ "jsonrpc" : "2.0" ,\r"id"\t: 1 , "method" : "tools/call" , "params" : { "name" :\t"${client.name('play')}" , ${meta([DONE])} } } `,
    );
  },
  'line breaks between its words, where there are no lines': async (client) => {
    await client.ask(
      `{\n  "jsonrpc": "2.0",\r\n  "id": 1,\n  "method": "tools/call",\n  "params": {\n    "name": "${client.name('play')}",\n    ${meta([DONE])}\n  }\n}\n`,
    );
  },
  'arguments that hold a message, on a line of its own': async (client) => {
    const inner = '{"jsonrpc":"2.0","id":"inner","method":"vendor/inner"}';
    await client.ask(request('tools/call', `"name":"${client.name('play')}",${meta([DONE])},"arguments":\n${inner}\n`));
  },
  'four hundred arrays inside each other': async (client) => {
    const deep = `${'['.repeat(400)}${']'.repeat(400)}`;
    await client.ask(
      request('tools/call', `"arguments":{"deep":${deep}},"name":"${client.name('play')}",${meta([DONE])}`),
    );
  },
  'arguments of three million characters': async (client) => {
    const long = '\\u0041'.repeat(500_000);
    await client.ask(
      request('tools/call', `"arguments":{"long":"${long}"},"name":"${client.name('play')}",${meta([DONE])}`),
    );
  },
  'another tool than the first': async (client) => {
    await client.ask(request('tools/call', `"name":"${client.name('everything-there-is')}",${meta([DONE])}`));
    await client.ask(request('tools/call', `"name":"${client.name('strings')}"`));
  },
  'a tool that the server does not list': {
    on: ['directly', 'over stdio through a hub, with prefixes', 'over HTTP to its own endpoint'],
    because: 'without a prefix nobody can tell which server has it',
    play: async (client) => {
      await client.ask(request('tools/call', `"name":"${client.name('hidden')}",${meta([DONE])}`));
      await client.ask(
        request('prompts/get', `"name":"${client.name('hidden')}",${meta([answer('{"messages":[]}')])}`),
      );
    },
  },
  'a method of the vendor': async (client) => {
    await client.ask(request('vendor/do', `"name":"x__y","uri":"no uri",${meta([answer('{"n":1.0}')])}`));
  },
  'a method of the vendor that fails': async (client) => {
    await client.ask(request('vendor/do', meta([fail('{"code":7,"message":"\\u0041","data":[1.0]}')])));
  },
  'a method that the server does not know': async (client) => {
    await client.ask('{"jsonrpc":"2.0","id":1,"method":"vendor/unknown"}');
    await client.ask(request('tools/unknown', ''));
  },
  'methods with odd names': async (client) => {
    for (const method of ['', 'rpc.discover', 'vendor\\/x', 'm\\u0065thode é', 'notifications/with-an-id', 'a\\nb']) {
      await client.ask(`{"jsonrpc":"2.0","id":1,"method":"${method}"}`);
    }
  },
  'params that are missing, null, empty or a list': async (client) => {
    for (const params of ['', ',"params":null', ',"params":{}', ',"params":[]', ',"params":[{"name":"x"},1.0]']) {
      await client.ask(`{"jsonrpc":"2.0","id":1,"method":"vendor/unknown"${params}}`);
    }
  },
  'a ping': async (client) => {
    await client.ask('{"jsonrpc":"2.0","id":"p","method":"ping"}');
  },
  'a ping while a call is in flight': async (client) => {
    const steps = [
      say('{"jsonrpc":"2.0","method":"notifications/vendor/ready"}'),
      hear('notifications/vendor/go'),
      DONE,
    ];
    await client.tell(call(client, steps));
    await client.next('notifications/vendor/ready');
    await client.ask('{"jsonrpc":"2.0","id":2.0,"method":"ping","params":{"_meta":{}}}');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/go"}');
    await client.answerTo('1');
  },
  'sixteen calls at once, answered in the opposite order': async (client) => {
    const ids = Array.from({ length: 16 }, (_, index) => String(index));
    for (const id of ids) {
      const ready = say(
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@token@,"progress":1}}',
      );
      const steps = [ready, hear(`notifications/vendor/go-${id}`), answer(`{"content":[],"marker":${id}}`)];
      await client.tell(callWithProgress(client, `"t${id}"`, steps, id));
      await client.next('notifications/progress');
    }
    for (const id of ids.toReversed()) {
      await client.tell(`{"jsonrpc":"2.0","method":"notifications/vendor/go-${id}"}`);
      await client.answerTo(id);
    }
  },
};
