import { answer, call, calling, callWithProgress, hear, request, type Scripts, say } from './scripts.js';

const DONE = answer('{"content":[]}');

function notice(method: string, params: string) {
  return say(`{"jsonrpc":"2.0","method":"${method}","params":${params}}`);
}

function progress(members: string) {
  return notice('notifications/progress', `{${members}}`);
}

/** Messages of either side that want no answer. */
export const NOTIFICATIONS: Scripts = {
  'progress that rises, with all its members and others': async (client) => {
    const steps = [
      progress('"progressToken":@token@,"progress":1,"total":3,"message":"\\u0041","vendor":1.0'),
      say(
        '{"params":{"_meta":{"k":-0},"progress":2.50,"x":1,"x":2,"progressToken":@token@},"vendor":1,"method":"notifications\\/progress","jsonrpc":"2.0"}',
      ),
      progress('"total":null,"progress":3e0,"progressToken":@token@'),
    ];
    await client.ask(callWithProgress(client, '"tok\\u0065n"', [...steps, DONE]));
  },
  'progress for tokens of every kind': async (client) => {
    for (const token of ['0', '-1', '9007199254740993', '1.0', '""', '"1"', '"a\\/b\\ud83d"', '"é😀"']) {
      await client.ask(callWithProgress(client, token, [progress('"progress":0.1,"progressToken":@token@'), DONE]));
    }
  },
  'progress of two calls by turns': async (client) => {
    const steps = (name: string) => [
      progress('"progressToken":@token@,"progress":1'),
      hear(`notifications/vendor/${name}`),
      progress('"progressToken":@token@,"progress":2'),
      hear(`notifications/vendor/${name}`),
      answer(`{"content":[],"marker":"${name}"}`),
    ];
    const go = (name: string) => client.tell(`{"jsonrpc":"2.0","method":"notifications/vendor/${name}"}`);
    for (const [id, name] of [
      ['1', 'a'],
      ['2', 'b'],
    ] as const) {
      await client.tell(callWithProgress(client, `"of ${name}"`, steps(name), id));
      await client.next('notifications/progress');
    }
    for (const name of ['b', 'a']) {
      await go(name);
      await client.next('notifications/progress');
    }
    for (const [id, name] of [
      ['2', 'b'],
      ['1', 'a'],
    ] as const) {
      await go(name);
      await client.answerTo(id);
    }
  },
  'progress on a prompt, a resource, a completion and a method of the vendor': async (client) => {
    const steps = JSON.stringify([
      progress('"progressToken":@token@,"progress":1'),
      answer('{"n":1.0,"messages":[],"contents":[]}'),
    ]);
    const meta = `"_meta":{"progressToken":"t","odd/steps":${steps}}`;
    await client.ask(request('prompts/get', `"name":"${client.name('play')}",${meta}`));
    await client.ask(request('resources/read', `"uri":"odd://things/1",${meta}`));
    const argument = '"argument":{"name":"city","value":"Z"}';
    await client.ask(
      request('completion/complete', `"ref":{"type":"ref/prompt","name":"${client.name('play')}"},${argument},${meta}`),
    );
    await client.ask(request('vendor/do', meta));
  },
  'levels of the log, each of them': async (client) => {
    const levels = ['emergency', 'alert', 'critical', 'error', 'warning', 'notice', 'info', 'debug'];
    for (const level of levels) await client.ask(request('logging/setLevel', `"level":"${level}"`));
  },
  'log messages of a call': calling(
    notice('notifications/message', '{"level":"error","logger":"l\\u006fg","data":{"n":[9007199254740993,1.0]}}'),
    say(
      '{"method":"notifications/message","vendor":1,"params":{"data":null,"x":1,"x":2,"_meta":{},"level":"critical"},"jsonrpc":"2.0"}',
    ),
    notice('notifications/message', '{"level":"emergency","data":"\\ud83d"}'),
    notice('notifications/message', '{"level":"some other level","data":[]}'),
    DONE,
  ),
  'log messages and progress of a call, by turns': async (client) => {
    const log = notice('notifications/message', '{"level":"emergency","data":1.0}');
    const steps = [1, 2, 3].flatMap((step) => [progress(`"progressToken":@token@,"progress":${step}`), log]);
    await client.ask(callWithProgress(client, '7', [...steps, DONE]));
  },
  'a log message after the answer': async (client) => {
    await client.ask(call(client, [DONE, notice('notifications/message', '{"level":"emergency","data":"late"}')]));
    await client.next('notifications/message');
  },
  'three hundred notifications in their order': calling(
    ...Array.from({ length: 300 }, (_, index) => notice('notifications/vendor/many', `{"n":${index}.0}`)),
    DONE,
  ),
  'notifications of the vendor during a call': calling(
    notice('notifications/vendor/x', '{"n":1.0,"n":2,"requestId":1,"progressToken":1,"uri":"odd://things/1"}'),
    say('{"method":"vendor/no-notifications","vendor":{},"jsonrpc":"2.0"}'),
    say('{"jsonrpc":"2.0","method":"notifications/vendor/null","params":null}'),
    say('{"jsonrpc":"2.0","method":"notifications/vendor/list","params":[1.0]}'),
    DONE,
  ),
  'notifications of the vendor after the answer': async (client) => {
    await client.ask(call(client, [DONE, notice('notifications/vendor/later', '{"n":1e400}')]));
    await client.next('notifications/vendor/later');
  },
  'notifications of the vendor to the server': async (client) => {
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/x"}');
    await client.tell(
      '{"vendor":1.0,"params":{"n":9007199254740993,"n":1,"name":"a__b"},"method":"vendor/y","jsonrpc":"2.0"}',
    );
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/null","params":null}');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/list","params":[1.0]}');
  },
  'a notification to the server while a call is in flight': async (client) => {
    await client.tell(
      call(client, [notice('notifications/vendor/ready', '{}'), hear('notifications/vendor/go'), DONE]),
    );
    await client.next('notifications/vendor/ready');
    await client.tell('{"jsonrpc":"2.0","method":"notifications/vendor/go","params":{"_meta":{"k":-0}}}');
    await client.answerTo('1');
  },
  'that the roots have changed': async (client) => {
    await client.tell('{"jsonrpc":"2.0","params":{"_meta":{"k":1.0}},"method":"notifications/roots/list_changed"}');
  },
};
