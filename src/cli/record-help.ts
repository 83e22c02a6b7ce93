/** The help of the commands that record, show and replay messages. */
export const RECORD_DETAILS = {
  activity: `Usage: trunkline activity [OPTIONS]

Shows the call log: one line for each call, with the client, the server, the tool, the outcome,
the time and the sizes. The setting \`gateway: { callLog: metadata }\` turns the log on;
\`full\` adds arguments and results, which --json shows.

Examples:
  trunkline activity -f
  trunkline activity --server files --json`,

  record: `Usage: trunkline record -o FILE [OPTIONS]

Records all messages of the running hub, between clients and Trunkline and between Trunkline and
servers, until Ctrl-C. Known secrets are replaced by [redacted]. To record from the first
message on, use the setting \`gateway: { record: FILE }\` or \`trunkline serve --record FILE\`.

Example:
  trunkline record -o session.jsonl`,

  inspect: `Usage: trunkline inspect [FILE] [OPTIONS]

Shows the messages of a recording, one on a line; without FILE, the messages of the running
hub as they pass. On a terminal, lines are cut to its width.

Examples:
  trunkline inspect
  trunkline inspect session.jsonl --server files`,

  replay: `Usage: trunkline replay FILE --as-server NAME
       trunkline replay FILE --as-client [--ignore MEMBER] [OPTIONS]

With --as-server: is an MCP server on stdin and stdout that answers as the server NAME did in the
recording. With --as-client: starts the configured servers, sends what the clients sent in the
recording, compares the answers, and exits with 1 if any differs.

Examples:
  trunkline replay session.jsonl --as-server files
  trunkline replay session.jsonl --as-client --ignore requestTime`,
} as const;

const SERVER_OPTION = '      --server NAME   show only what concerns this server';

export const RECORD_OPTIONS: Readonly<Record<keyof typeof RECORD_DETAILS, readonly string[]>> = {
  activity: [
    '  -f, --follow        go on with the calls from now on',
    SERVER_OPTION,
    '      --json          print the log as it is',
  ],
  record: [
    '  -o, --out FILE      write to this file',
    '      --max SIZE      keep the newest messages, SIZE in all (100MiB)',
  ],
  inspect: ['  -f, --follow        go on with what is recorded from now on', SERVER_OPTION],
  replay: ['      --ignore MEMBER members with this name may differ; repeatable'],
};
