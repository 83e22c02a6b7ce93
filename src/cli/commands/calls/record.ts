import { resolve } from 'node:path';
import { EXIT } from '../../../errors/usage-error.js';
import type { RecordCounts } from '../../../hub/server/hub-commands.js';
import type { Invocation } from '../../command.js';
import { printJson, tell } from '../../output.js';
import { ProgressLine } from '../../terminal.js';
import { withHub } from '../hub/hub-access.js';
import { readSize } from './recording.js';

/** `trunkline record`: records all messages of the running hub until Ctrl-C. The hub writes the file. */
export async function record({
  settings,
  options: { out = '', max },
  isJson,
}: Invocation<{ out: string; max: string }>): Promise<number> {
  const [path, maxBytes] = [resolve(out), readSize(max)];
  return await withHub(settings, async ({ control, site }) => {
    const progress = new ProgressLine(process.stderr);
    let last: RecordCounts = { written: 0, dropped: 0 };
    let isFirst = true;
    const recording = control.request('record', { file: path, max: maxBytes }, (event) => {
      last = event as RecordCounts;
      if (isFirst) tell(`Recording all messages of the hub of ${site.configFile} to ${path}. Ctrl-C ends this.`);
      isFirst = false;
      progress.show(countsText(last));
    });
    void interrupted()
      .then(() => control.request('stopRecording', { file: path }))
      .catch(() => {});
    try {
      last = (await recording) as RecordCounts;
    } finally {
      progress.clear();
    }
    const { written, dropped, fault = null } = last;
    if (isJson) await printJson({ file: path, written, dropped, fault });
    else tell(`${path} has ${countsText(last)}.`);
    return last.dropped > 0 ? EXIT.failed : EXIT.ok;
  });
}

/** Text that counts the messages of a recording, and the missing ones. */
export function countsText({ written, dropped, fault }: RecordCounts): string {
  const missing =
    dropped === 0 ? '' : `; ${dropped} ${dropped === 1 ? 'is' : 'are'} missing, because the disk was too slow or full`;
  return `${written} ${written === 1 ? 'message' : 'messages'}${missing}${fault === undefined ? '' : ` (${fault})`}`;
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
}
