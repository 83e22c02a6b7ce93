import { describe, expect, it } from 'vitest';
import { createRestartTool } from '../../../src/gateway/status/own-tool.js';
import { scriptGateway } from '../../support/scripted-gateway.js';

describe('the tool trunkline__restart', () => {
  it('restarts the server that is named, and no other', async () => {
    const { server, gateway } = scriptGateway({ servers: { a: {}, b: {} } });
    const backends = new Map(['a', 'b'].map((key) => [key, server(key).backend]));
    const seen = { backends, catalogs: gateway.catalogs };
    const restarted: string[] = [];
    const tool = createRestartTool(
      () => ['a', 'b'],
      (key) => restarted.push(key),
    );
    expect((await tool.call({ server: 'b' }, seen)).isError).toBeUndefined();
    expect((await tool.call({ server: 'c' }, seen)).isError).toBe(true);
    expect((await tool.call({}, seen)).isError).toBe(true);
    expect((await tool.call(undefined, seen)).isError).toBe(true);
    expect(restarted).toEqual(['b']);
  });

  it('takes up no more than 400 bytes of the list of tools', () => {
    const tool = createRestartTool(
      () => [],
      () => {},
    );
    expect(tool.entry.length).toBeLessThanOrEqual(400);
  });
});
