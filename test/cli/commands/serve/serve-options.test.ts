import { parseArgs } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type HttpValues, readTransports, SERVE_OPTIONS } from '../../../../src/cli/commands/serve/serve-options.js';
import { UsageError } from '../../../../src/host/errors/usage-error.js';

/** As the command line is read. */
function transportsOf(...args: string[]) {
  return readTransports(parseArgs({ args, options: SERVE_OPTIONS }).values as HttpValues);
}

const PLAIN = { noAuth: false, allowedHosts: [], allowedOrigins: [], tls: undefined };

describe('the transports', () => {
  it.each([
    [[], true, false],
    [['--stdio'], true, false],
    [['--http', '7411'], false, true],
    [['--http', '7411', '--stdio'], true, true],
  ])('%j: stdio %s, HTTP %s', (args, stdio, isHttp) => {
    const { stdio: isStdio, http } = transportsOf(...args);
    expect([isStdio, http !== undefined]).toEqual([stdio, isHttp]);
  });

  it('serve a view to a client on stdin only', () => {
    const http = '7411';
    expect(() => readTransports({ http, view: 'work' })).toThrow('`--view` is for the client on stdin');
    expect(readTransports({ http, stdio: true, view: 'work' }).stdio).toBe(true);
    expect(readTransports({ view: 'work' })).toEqual({ stdio: true, http: undefined });
  });
});

describe('the address', () => {
  it.each([
    ['7411', 'localhost', 7411],
    ['0', 'localhost', 0],
    ['65535', 'localhost', 65_535],
    ['localhost:7411', 'localhost', 7411],
    ['127.0.0.1:0', '127.0.0.1', 0],
    ['0.0.0.0:80', '0.0.0.0', 80],
    ['[::1]:7411', '::1', 7411],
    ['[::]:443', '::', 443],
    ['[::ffff:127.0.0.1]:1', '::ffff:127.0.0.1', 1],
    ['gateway.example:8080', 'gateway.example', 8080],
  ])('%s is port %s, %s', (address, host, port) => {
    expect(transportsOf('--http', address).http).toEqual({ host, port, ...PLAIN });
  });

  it.each(['', 'localhost', ':7411', '65536', '-1', '7411x', '::1:7411', '[::1]', 'http://localhost:7411'])(
    '%j has no valid port',
    (address) => {
      expect(() => transportsOf(`--http=${address}`)).toThrow(UsageError);
      expect(() => transportsOf(`--http=${address}`)).toThrow(`\`--http ${address}\` has no valid port`);
    },
  );
});

describe('the other options', () => {
  it('are taken with HTTP, and repeated where that makes sense', () => {
    const args = [
      ['--http', '7411', '--no-auth'],
      ['--allowed-host', 'a.example', '--allowed-host', 'b.example:8080'],
      ['--allowed-origin', 'https://a.example'],
      ['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'],
    ];
    expect(transportsOf(...args.flat()).http).toEqual({
      host: 'localhost',
      port: 7411,
      noAuth: true,
      allowedHosts: ['a.example', 'b.example:8080'],
      allowedOrigins: ['https://a.example'],
      tls: { certFile: 'cert.pem', keyFile: 'key.pem' },
    });
  });

  it.each([
    ['--no-auth'],
    ['--allowed-host', 'a.example'],
    ['--allowed-origin', 'https://a.example'],
    ['--tls-cert', 'cert.pem'],
    ['--tls-key', 'key.pem'],
  ])('such as %s are refused without HTTP', (option, ...value) => {
    for (const stdio of [[], ['--stdio']]) {
      expect(() => transportsOf(...stdio, option, ...value)).toThrow(`\`${option}\` works only with HTTP`);
    }
  });

  it.each(['--tls-cert', '--tls-key'])('refuse %s alone', (option) => {
    expect(() => transportsOf('--http', '7411', option, 'file.pem')).toThrow(
      '`--tls-cert` and `--tls-key` belong together',
    );
  });
});
