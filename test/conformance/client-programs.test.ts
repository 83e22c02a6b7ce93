import { describe, expect, it } from 'vitest';
import { readClaude, readCodex, readGemini, readMcporter } from '../../lab/conformance/client-programs.mjs';

const COMMAND = 'trunkline: node /a - b/cli.js --config trunkline.yaml';

describe('the verdict of a client on a server', () => {
  it('is good of Claude Code only if nothing follows "Connected"', () => {
    const output = `Checking MCP server health…\n\n${COMMAND} - ✔ Connected\n`;
    expect(readClaude(output)).toEqual([{ name: 'trunkline', said: '✔ Connected', isGood: true }]);
    const failed = `${COMMAND} - ! Connected · tools fetch failed — Request timed out`;
    expect(readClaude(failed)).toEqual([
      { name: 'trunkline', said: '! Connected · tools fetch failed — Request timed out', isGood: false },
    ]);
    expect(readClaude(`${COMMAND} - ✘ Failed to connect`)[0]?.isGood).toBe(false);
  });

  it('is good of Gemini only if the server is connected', () => {
    const line = (mark: string, said: string) => `Configured MCP servers:\n\n${mark} ${COMMAND} (stdio) - ${said}\n`;
    expect(readGemini(line('✓', 'Connected'))).toEqual([{ name: 'trunkline', said: 'Connected', isGood: true }]);
    expect(readGemini(line('✗', 'Disconnected'))[0]?.isGood).toBe(false);
    expect(readGemini(line('○', 'Disabled'))[0]?.isGood).toBe(false);
  });

  it('is not good of a list that has the status tool only', () => {
    const listed = (...names: string[]) => names.map((name) => ({ name }));
    const ofMcporter = (tools: unknown) =>
      readMcporter(JSON.stringify({ servers: [{ name: 'trunkline', status: 'ok', tools }] }));
    expect(ofMcporter(listed('files__read', 'trunkline__status'))).toEqual([
      { name: 'trunkline', tools: 2, said: 'ok', isGood: true },
    ]);
    expect(ofMcporter(listed('trunkline__status'))[0]?.isGood).toBe(false);

    const ofCodex = (tools: object) => readCodex({ data: [{ name: 'trunkline', serverInfo: {}, tools }] });
    expect(ofCodex({ files__read: {} })[0]?.isGood).toBe(true);
    expect(ofCodex({ trunkline__status: {} })[0]?.isGood).toBe(false);
  });

  it('names the error that mcporter reports', () => {
    const servers = [{ name: 'trunkline', status: 'offline', error: 'Timed out after 30s' }];
    expect(readMcporter(JSON.stringify({ servers }))).toEqual([
      { name: 'trunkline', tools: 0, said: 'offline: Timed out after 30s', isGood: false },
    ]);
  });
});
