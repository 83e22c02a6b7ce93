import type { GlobalOptions } from '../../../app/global-options.js';
import { messageText, parseLine, type RecordedLine } from '../../../extras/record/format.js';
import { EXIT } from '../../../host/errors/usage-error.js';
import { logLines } from '../../../host/files/log-lines.js';
import { isRecord } from '../../../wire/json/json-value.js';
import type { Invocation } from '../../command.js';
import { endWithReader, print, printJson, tell } from '../../output.js';
import { fitted } from '../../terminal.js';
import { withGateway } from '../hub/hub-access.js';
import { nameOf } from '../hub/running.js';
import { openRecording } from './record.js';

/** `trunkline inspect`: shows the messages of a recording, or the present messages of the running gateway, one a line. */
export async function inspect(invocation: Invocation<{ follow: true; server: string }>): Promise<number> {
  const { settings, words, options, isJson } = invocation;
  const [file] = words;
  const { follow: isFollowed = false, server } = options;
  endWithReader();
  const show = async (line: RecordedLine | undefined) => {
    const text = line && lineText(line, server);
    if (line === undefined || text === undefined) return;
    if (isJson) await printJson(recorded(line));
    else await print(fitted(text, process.stdout));
  };
  if (file === undefined) return await inspectGateway(settings, server, show);
  const { header } = await openRecording(file);
  // Reads one file of a recording with one part, because a file with the name of an earlier part belongs to an earlier recording.
  const maxFiles = header.part > 1 || isFollowed ? 2 : 1;
  for await (const line of logLines({ file, maxFiles, isFollowed })) await show(parseLine(line));
  return EXIT.ok;
}

async function inspectGateway(
  settings: GlobalOptions,
  server: string | undefined,
  show: (line: RecordedLine | undefined) => Promise<void>,
): Promise<number> {
  return await withGateway(settings, async ({ control, gateway }) => {
    await control.request('messages', { server }, (event) => {
      if (!isRecord(event)) return;
      if (event.begun === true) tell(`The messages of ${nameOf(gateway)}, from now on. Ctrl-C ends this.`);
      else if (typeof event.line === 'string') void show(parseLine(event.line));
      else if (typeof event.missing === 'number') void show({ kind: 'gap', dropped: event.missing });
    });
    return EXIT.ok;
  });
}

/** Returns the text for a line of a recording, or `undefined` for a message that is not wanted. */
export function lineText(line: RecordedLine, server: string | undefined): string | undefined {
  switch (line.kind) {
    case 'header': {
      const { version, startedAt, servers, part, note } = line.header;
      const about = `Trunkline ${version}, from ${startedAt}, servers: ${servers.join(', ')}`;
      return `--- recording, part ${part}: ${about}${note === undefined ? '' : `; ${note}`}`;
    }
    case 'gap':
      return `--- ${line.dropped} messages are missing here, because they could not be written in time`;
    case 'entry':
      return server === undefined || line.entry.server === server ? messageText(line.entry) : undefined;
  }
}

function recorded(line: RecordedLine): object {
  switch (line.kind) {
    case 'header':
      return line.header;
    case 'entry':
      return line.entry;
    case 'gap':
      return { dropped: line.dropped };
  }
}
