import { type DefineCommand, GROUPS } from '../command.js';
import { readSize } from './calls/recording.js';

export const recordCommand: DefineCommand = (program) =>
  program
    .command('record')
    .helpGroup(GROUPS.messages)
    .summary('record all messages of the hub')
    .description(
      'Records all messages of the running hub, between clients and Trunkline and between Trunkline and servers, until Ctrl-C. Known secrets are replaced by [redacted]. To record from the first message on, use the setting `gateway: { record: FILE }` or `trunkline serve --record FILE`.',
    )
    .requiredOption('-o, --out <FILE>', 'write to this file')
    .option('--max <SIZE>', 'keep the newest messages, SIZE in all (100MiB)')
    .option('--json', 'at the end, print the counts as JSON')
    .example('trunkline record -o session.jsonl')
    .runs<{ out: string; max: string; json: true }>(async ({ settings, options }) => {
      const { out = '', max, json = false } = options;
      const { record } = await import('./calls/record.js');
      return await record(settings, { file: out, maxBytes: readSize(max), isJson: json });
    });
