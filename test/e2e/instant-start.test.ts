import { expect, it, onTestFinished } from 'vitest';
import { GatewayProcess } from '../support/gateway-process.js';

it('the second run lists at once what a slow server offered in the first run, byte for byte, and calls wait for the server', async () => {
  const options = { servers: { slow: { args: ['slow=1500'] }, quick: {} } };
  const first = await GatewayProcess.start(options);
  onTestFinished(() => first.dispose());
  const before = await first.request('tools/list');
  for (const server of ['slow', 'quick']) await first.untilState(server, 'ready');
  await first.end();

  const second = await GatewayProcess.start({ ...options, folder: first.folder }, { handshake: false });
  onTestFinished(() => second.dispose());
  const { instructions } = (await second.initialize()).message.result;
  expect(instructions).toMatch(/\n- slow: tools echo, .*\n- quick: tools echo, /);
  const list = await second.request('tools/list');
  const callSlow = second.call('slow__echo', { text: 'x' });
  expect(list.raw.replace(/"id":\d+/, '')).toBe(before.raw.replace(/"id":\d+/, ''));
  expect(await second.status('slow')).toMatchObject({ state: 'starting', fromLastRun: true });
  const { result } = (await second.call('trunkline__status')).message;
  expect(result.content[0].text).toContain(
    'Starting, with the tools of the last run. Calls wait until the server is ready: slow (',
  );
  const quick = await second.call('quick__echo', { text: 'y' });
  expect(quick.message.result.isError).toBeUndefined();
  const slow = await callSlow;
  expect(slow.message.result.isError).toBeUndefined();
  expect(slow.at).toBeGreaterThan(quick.at);
  expect(await second.status('slow')).toMatchObject({ state: 'ready', fromLastRun: false });
  expect(second.notifications('notifications/tools/list_changed')).toEqual([]);
});
