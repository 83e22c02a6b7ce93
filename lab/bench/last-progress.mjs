// How many progress notifications the official client loses because it reads the last one together with the answer:
// straight to server-everything, and through Trunkline (docs/decisions/0008-gap-after-progress.md).
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const CALLS = 200;
const STEPS = 4;
const root = new URL('../..', import.meta.url).pathname;
const ways = [
  ['direct', [`${root}node_modules/@modelcontextprotocol/server-everything/dist/index.js`], ''],
  ['Trunkline', [`${root}dist/cli.js`, '--no-hub', '--config', `${root}config/demo.yaml`], 'everything__'],
];

for (const [label, args, prefix] of ways) {
  const client = new Client({ name: 'last-progress', version: '1' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }));
  await client.listTools();
  const call = { name: `${prefix}trigger-long-running-operation`, arguments: { duration: 0.02, steps: STEPS } };
  let seen = 0;
  for (let count = 0; count < CALLS; count += 1) {
    await client.callTool(call, undefined, { onprogress: () => (seen += 1) });
  }
  console.log(`${label}: ${CALLS * STEPS - seen} of ${CALLS * STEPS} notifications lost`);
  await client.close();
}
