// The configuration of the SDK's own suite, with one change: clients of its tests reach their servers through Trunkline.
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const suite = process.env.TRUNKLINE_SDK_SUITE;
const { default: config } = await import(pathToFileURL(join(suite, 'vitest.config.js')));
const helpers = join(suite, 'helpers', 'index.ts');
const wiring = fileURLToPath(new URL('wire.mjs', import.meta.url));

/** Replaces the function with which each test connects its client, in memory only. */
const wireThroughGateway = {
  name: 'wire-through-gateway',
  enforce: 'pre',
  transform(code, id) {
    if (id !== helpers) return undefined;
    const renamed = code.replace('export async function wire(', 'async function wireDirectly(');
    if (renamed === code) throw new Error(`${helpers} has no function wire`);
    return `${renamed}
      import { getCurrentTest } from 'vitest/suite';
      import { serveStdio } from '@modelcontextprotocol/server/stdio';
      import { wiringThroughGateway } from ${JSON.stringify(wiring)};
      export const wire = wiringThroughGateway({
        getCurrentTest, wireDirectly, sniffTransport, serveStdio, StdioServerTransport, StreamableHTTPClientTransport,
      });`;
  },
};

export default { ...config, plugins: [...config.plugins, wireThroughGateway] };
