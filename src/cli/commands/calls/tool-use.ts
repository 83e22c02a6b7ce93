import type { GlobalOptions } from '../../../app/global-options.js';
import { readConfigOrError } from '../../../app/read-config.js';
import { ConfigError } from '../../../config/file/config-error.js';
import type { Config } from '../../../config/resolve/config.js';
import { MAX_CALL_FILES } from '../../../extras/record/call-log.js';
import { logLines } from '../../../host/files/log-lines.js';
import { callLogFile } from '../../../state/user-files.js';
import { type ToolUse, UNUSED_DAYS } from '../../../status/tool-advice.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';
import { METHODS } from '../../../wire/mcp/methods.js';

const UNUSED_MS = UNUSED_DAYS * 24 * 60 * 60 * 1_000;

/** Reads the tool use for the configuration of these options. Resolves with `undefined` if it cannot be used. */
export async function readToolUseOf(settings: GlobalOptions, now: number): Promise<ToolUse | undefined> {
  return await readToolUse(await readConfigOrError(settings), now);
}

/** Resolves with `undefined` if the configuration turns the log off, or has mistakes. `now` is in milliseconds since 1970. */
export async function readToolUse(config: Config | ConfigError, now: number): Promise<ToolUse | undefined> {
  if (config instanceof ConfigError || config.gateway.callLog === 'off') return undefined;
  const since = new Date(now - UNUSED_MS).toISOString();
  const called = new Set<string>();
  let first: string | undefined;
  for await (const line of logLines({ file: callLogFile(), maxFiles: MAX_CALL_FILES, isFollowed: false })) {
    const call = parseJson(line);
    if (!isRecord(call) || typeof call.time !== 'string') continue;
    first ??= call.time;
    if (call.time < since || call.method !== METHODS.callTool) continue;
    called.add(keyOf(String(call.server), String(call.tool)));
  }
  return {
    isLongEnough: first !== undefined && first <= since,
    wasCalled: ({ server, name, original }) => [name, original].some((each) => called.has(keyOf(server, each))),
  };
}

function keyOf(server: string, tool: string): string {
  return JSON.stringify([server, tool]);
}
