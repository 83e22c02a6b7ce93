import { existsSync } from 'node:fs';
import type { GlobalOptions } from '../../../app/global-options.js';
import { type LoggedCall, MAX_CALL_FILES } from '../../../extras/record/call-log.js';
import { EXIT, UsageError } from '../../../host/errors/usage-error.js';
import { logLines } from '../../../host/files/log-lines.js';
import { MAX_LOG_FILES } from '../../../host/observe/log-file.js';
import { toText } from '../../../host/observe/log-line.js';
import { callLogFile } from '../../../state/user-files.js';
import { isRecord, parseJson } from '../../../wire/json/json-value.js';
import { capitalized, printable } from '../../../wire/json/printable.js';
import { hintFor } from '../../../wire/json/suggest.js';
import type { Invocation } from '../../command.js';
import { endWithReader, print, tell } from '../../output.js';
import { colorOf, fitted, type Look, lookOf, paint } from '../../terminal.js';
import { describeHub, findHubSite, isHubOn, type OpenGateway, openGateway } from './hub-access.js';
import { nameOf } from './running.js';

/** `trunkline logs`: prints the last output of a server, and the log of the gateway. The log of a hub stays after its end. */
export async function logs({ settings, words, options, isJson }: Invocation<{ follow: true }>): Promise<number> {
  const [server] = words;
  const isFollowed = options.follow === true;
  const open = await openGateway(settings, { says: 'if several' });
  // Without a gateway that answers, the log of the last hub tells what happened.
  const reached = 'because' in open ? undefined : open;
  const site = reached === undefined ? findHubSite(settings) : undefined;
  try {
    const known = reached && (await askGateway(reached, server));
    const look = isJson ? undefined : lookOf(process.stdout);
    const show = async (line: string) => {
      const text = logText(line, server, look);
      if (text !== undefined) await print(text);
      return text !== undefined;
    };
    const output = outputText(known?.output ?? [], server ?? '', isJson);
    if (reached !== undefined && known?.logFile === null) {
      endWithReader();
      for (const text of output) await print(text);
      return await printRecent(reached, { server, follow: isFollowed }, show);
    }
    const file = known?.logFile ?? site?.logFile ?? '';
    if (!existsSync(file) && !isFollowed) {
      tell(noLogText(file, known?.configFile ?? site?.configFile ?? ''));
      return known === undefined ? EXIT.noHub : EXIT.ok;
    }
    endWithReader();
    for (const text of output) await print(text);
    let printed = 0;
    for await (const line of logLines({ file, maxFiles: MAX_LOG_FILES, isFollowed }))
      printed += Number(await show(line));
    // The log may have records of a server that was removed, so the key is checked only if no record was printed. Without a
    // gateway, only the configuration shows that a key is misspelled.
    if (printed === 0 && known === undefined && server !== undefined) await mustBeConfigured(settings, server);
    return EXIT.ok;
  } finally {
    reached?.control.close();
  }
}

function noLogText(file: string, configFile: string): string {
  const start = isHubOn(configFile) ? 'A client starts the hub.' : 'The setting `gateway: { hub: auto }` turns it on.';
  return `There is no log at ${file} yet: no hub of ${configFile} has written anything. ${start}`;
}

/** Prints the latest records of a gateway that logs to stderr. */
async function printRecent(
  { control, gateway }: OpenGateway,
  { server, follow }: { readonly server: string | undefined; readonly follow: boolean },
  show: (line: string) => Promise<boolean>,
): Promise<number> {
  let printed = 0;
  let printing = Promise.resolve();
  await control.request('log', { follow }, (event) => {
    const line = isRecord(event) ? event.line : undefined;
    if (typeof line !== 'string') return;
    printing = printing.then(async () => {
      printed += Number(await show(line));
    });
  });
  await printing;
  const about = server === undefined ? '' : ` about ${server}`;
  const how =
    'It logs warnings to stderr; `-v` makes it log events, too, and `--log-file FILE` makes it log into a file.';
  if (printed === 0) tell(`${capitalized(nameOf(gateway))} has logged nothing${about} since its start. ${how}`);
  return EXIT.ok;
}

/** Throws a `UsageError` with a suggestion if the configuration has no such server. */
async function mustBeConfigured(settings: GlobalOptions, server: string): Promise<void> {
  const [{ readConfig }, { chooseServers }] = await Promise.all([
    import('../../../app/read-config.js'),
    import('../calls/run-once.js'),
  ]);
  chooseServers(await readConfig(settings), [server]);
}

/** Asks the running gateway for its log file, and for the last output of `server`. Throws a `UsageError` if it has no such server. */
async function askGateway({ control, report: ask }: OpenGateway, server: string | undefined) {
  const { logFile, configFile, hasStarted } = await describeHub(control);
  if (server === undefined || !hasStarted) return { logFile, configFile, output: [] };
  const { servers } = await ask();
  const report = servers.find((each) => each.server === server);
  if (report !== undefined) return { logFile, configFile, output: [...report.cause, ...report.log] };
  const keys = servers.map((each) => each.server);
  const hint = hintFor(server, keys, `its servers are: ${keys.join(', ')}`);
  throw new UsageError(`the gateway has no server \`${server}\``, hint);
}

/** Returns the lines of the last output of a server: with a heading for a person, or as records. */
export function outputText(lines: readonly string[], server: string, isJson: boolean): string[] {
  if (isJson) return lines.map((line) => JSON.stringify({ server, msg: 'output', line }));
  return lines.length === 0 ? [] : [`The last output of ${server}:`, ...lines.map((line) => `  | ${line}`), ''];
}

/**
 * Returns a line of the log for stdout, or `undefined` if it is not about the server. With `look`, it is text for a person,
 * with a color for each server, and with the date, because a log covers several days. Without `look`, it is the record itself.
 */
export function logText(line: string, server: string | undefined, look: Look | undefined): string | undefined {
  const record = parseJson(line);
  if (server !== undefined && !(isRecord(record) && isOf(server, record.server))) return undefined;
  if (look === undefined) return line;
  if (!isRecord(record) || record.time === undefined) return printable(line);
  const date = new Date(String(record.time)).toLocaleDateString('sv');
  const text = `${date} ${toText(record)
    .trimEnd()
    .replaceAll('\n', `\n${' '.repeat(date.length + 1)}`)}`;
  const { server: named } = record;
  if (typeof named !== 'string') return text;
  // All instances of a server have the color of its key. The name comes first after the time and the level.
  const color = colorOf(named.replace(/~\d+$/, ''));
  return text.replace(`${printable(named)}: `, (name) => paint(look, color, name));
}

/** Whether an instance is of this server. Instances of a server are called `KEY`, `KEY~2`, `KEY~3`. */
function isOf(server: string, instance: unknown): boolean {
  return typeof instance === 'string' && (instance === server || instance.startsWith(`${server}~`));
}

/** `trunkline activity`: shows the call log, one line a call. */
export async function activity({ options, isJson }: Invocation<{ follow: true; server: string }>): Promise<number> {
  const { follow: isFollowed = false, server } = options;
  const file = callLogFile();
  if (!existsSync(file) && !isFollowed) {
    tell(
      `There is no call log at ${file}: no client has called a tool yet, or \`gateway: { callLog: off }\` turns it off.`,
    );
    return EXIT.ok;
  }
  endWithReader();
  for await (const line of logLines({ file, maxFiles: MAX_CALL_FILES, isFollowed })) {
    const text = activityText(line, server);
    if (text === undefined) continue;
    await print(isJson ? line : fitted(text, process.stdout));
  }
  return EXIT.ok;
}

/** Returns a line of the call log as text, or `undefined` if it is not wanted or incomplete. */
export function activityText(line: string, server: string | undefined): string | undefined {
  const value = parseJson(line);
  if (!isRecord(value) || typeof value.time !== 'string') return undefined;
  const at = new Date(value.time);
  const time = `${at.toLocaleDateString('sv')} ${at.toTimeString().slice(0, 8)}`;
  if (typeof value.dropped === 'number')
    return `${time} ${value.dropped} calls are missing here, because the disk was too slow or full`;
  const call = value as unknown as LoggedCall;
  if (server !== undefined && call.server !== server) return undefined;
  const { outcome, reason, rule, ms, client, session, method, tool, user, machine } = call;
  const who = user ?? (machine === undefined ? undefined : `machine ${machine}`);
  const what = method === 'tools/call' && tool !== undefined ? tool : [method, tool].filter(Boolean).join(' ');
  const by = rule === undefined ? '' : ` by ${rule}`;
  const how = reason === undefined ? outcome : `${outcome} (${reason}${by})`;
  const findings = (call.findings ?? []).map((finding) => `; ${finding}`).join('');
  const sizes = `${call.in} B in, ${call.out} B out`;
  return printable(
    `${time} ${call.server ?? '-'} ${what}: ${how}, ${ms} ms, ${sizes}, ${who === undefined ? '' : `${who} with `}${client} ${session}${findings}`,
  );
}
