import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import * as https from 'node:https';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { Place } from '../support/http-place.js';

let place: Place;
let certFile: string;
let keyFile: string;
beforeEach(() => {
  place = new Place();
  [certFile, keyFile] = [place.file('cert.pem'), place.file('key.pem')];
});
afterEach(() => place.dispose());

const files = () => ['--tls-cert', certFile, '--tls-key', keyFile];
const run = () => place.run(['--http', '127.0.0.1:0', ...files(), ...place.configure({ lab: place.lab() })]);

describe('a file for TLS', () => {
  it.each([
    ['a pipe that nobody writes', () => execFileSync('mkfifo', [keyFile]), 'it is a pipe, not a regular file'],
    ['a folder', () => mkdirSync(keyFile), 'it is a folder, not a file'],
    ['too large', () => writeFileSync(keyFile, ' '.repeat(1024 * 1024 + 1)), 'it is too large'],
    ['absent', () => {}, 'it does not exist'],
  ])('F85: that is %s ends the start with one line', async (_what, create, reason) => {
    writeFileSync(certFile, 'a certificate');
    create();
    const hint = 'pass readable PEM files with --tls-cert and --tls-key';
    const stderr = `trunkline: cannot read the file ${keyFile} of --tls-key: ${reason}; ${hint}\n`;
    expect(await run()).toEqual({ code: 2, stdout: '', stderr });
  });

  it('that holds something else than PEM ends the start with one line', async () => {
    for (const file of [certFile, keyFile]) writeFileSync(file, 'something else');
    const { code, stderr } = await run();
    expect(code).toBe(2);
    expect(stderr).toMatch(/^trunkline: cannot use the TLS certificate or key .+\n$/);
  });

  it('may be a symbolic link, as programs that renew certificates leave it', async () => {
    const made = await createCertificate(place.file('.'));
    symlinkSync(made.certFile, certFile);
    symlinkSync(made.keyFile, keyFile);
    const { port } = await place.serve({ args: files() });
    const request = https.get({
      host: '127.0.0.1',
      servername: 'localhost',
      port,
      path: '/healthz',
      ca: readFileSync(made.certFile),
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
  });
});
