import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { findHub } from '../../src/hub/attach/find-hub.js';
import { SOCKETS } from '../../src/hub/endpoint.js';
import { type Claim, hubFiles } from '../../src/hub/hub-folder.js';
import { playHub } from '../hub/forms.js';
import { IS_WINDOWS } from '../support/platform.js';

const HELLO = { role: 'client', version: '1.0.0', pid: 1, folder: '/', environment: {}, resumed: 0 } as const;
const LISTEN = `
require('node:net').createServer().listen({ path: process.argv[1], backlog: 1 }, () => {
  console.log('listens');
  process.kill(process.pid, 'SIGSTOP');
});`;

// A pipe of Windows has no such queue.
it.skipIf(IS_WINDOWS)(
  'a hub that is busy while many clients wait for it gets no successor before it ends',
  async () => {
    const folder = mkdtempSync('/tmp/tlq-');
    const { folder: own, socket, token, pid, ready } = hubFiles(folder, 1);
    mkdirSync(own);
    const hub = spawn(process.execPath, ['-e', LISTEN, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => {
      hub.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    });
    await once(hub.stdout, 'data');
    for (const [file, text] of Object.entries({ [token]: 'token', [pid]: String(hub.pid), [ready]: '' }))
      writeFileSync(file, text);
    const waiting: Socket[] = [];
    onTestFinished(() => {
      for (const each of waiting) each.destroy();
    });
    let isFull = false;
    while (!isFull) {
      const client = connect(socket);
      client.on('error', () => {});
      waiting.push(client);
      await once(client, 'connect').catch(() => {
        isFull = true;
      });
    }

    const started: number[] = [];
    const start = ({ number, listener }: Claim) => {
      started.push(number);
      if (listener === undefined) throw new Error('a socket is handed over');
      playHub(listener, hubFiles(folder, number), '{"ok":true,"version":"1.0.0","pid":1}');
      onTestFinished(() => void listener.close());
    };
    const find = () => findHub({ folder, hello: HELLO, form: SOCKETS, start });
    expect(await find()).toMatchObject({
      kind: 'none',
      because: expect.stringMatching(/^the hub runs, but did not answer within 0\.8 s/),
    });
    expect(started).toEqual([]);

    hub.kill('SIGKILL');
    await once(hub, 'exit');
    const found = await find();
    expect(found).toMatchObject({ kind: 'attached', connection: { number: 2 } });
    if (found.kind === 'attached') found.connection.socket.destroy();
  },
);
