import { expect, it } from 'vitest';
import { Recorder } from '../../../src/extras/record/record-to.js';
import { KnownSecrets } from '../../../src/host/observe/redact.js';
import type { PassingMessage } from '../../../src/wire/io/message-feed.js';
import { unedited } from '../../../src/wire/jsonrpc/message.js';
import { bytesOf } from '../../support/wire.js';

it('records the name of a client in each entry, whatever it is, cut if it is long', async () => {
  let pass: (message: PassingMessage) => void = () => {};
  let written = '';
  const recorder = new Recorder({
    feed: {
      observe: (observer) => {
        pass = observer;
        return () => {};
      },
    },
    findSecrets: new KnownSecrets().find,
    sink: {
      write: async (text) => {
        written += text;
      },
      close: async () => {},
    },
    now: () => 0,
    onFault: () => expect.unreachable(),
  });
  const message = unedited(bytesOf('{"jsonrpc":"2.0","method":"x"}'));
  for (const name of ['agent', 'x'.repeat(100_000), { toString: 1 }, undefined]) {
    const client = () => ({ name, version: '1' });
    pass({ at: 0, direction: 'c>g', message, connection: { number: 1, client } } as PassingMessage);
  }
  await recorder.close();
  const names = written.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line).client]));
  expect(names).toEqual(['agent/1', `${'x'.repeat(200)}…`, '{"toString":1}/1', 'undefined/1']);
});
