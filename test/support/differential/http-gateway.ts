// The built CLI over HTTP for the differential tests.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { CLI } from '../gateway-process.js';

export interface HttpGateway {
  /** Of the endpoint for all servers. */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts the built CLI over HTTP without a token; resolves when it listens. */
export async function openHttpGateway(config: string): Promise<HttpGateway> {
  const gateway = spawn(process.execPath, [CLI, 'serve', '--config', config, '--http', '127.0.0.1:0', '--no-auth']);
  const exited = once(gateway, 'exit');
  let said = '';
  for await (const text of gateway.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    said += text;
    const url = /^Trunkline serves (http:\/\/\S+\/mcp)\b/m.exec(said)?.[1];
    if (url === undefined) continue;
    gateway.stderr.resume();
    const close = async () => {
      gateway.kill('SIGTERM');
      await exited;
    };
    return { url, close };
  }
  throw new Error(`It does not listen:\n${said}`);
}
