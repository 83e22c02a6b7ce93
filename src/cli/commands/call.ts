import { type DefineCommand, GROUPS } from '../command.js';

export const callCommand: DefineCommand = (program) =>
  program
    .command('call')
    .argument('<TOOL>', 'the name of the tool, as `trunkline tools` lists it, or SERVER.TOOL')
    .argument('[ARGUMENT...]', 'KEY=TEXT, KEY:=JSON, or one JSON object; - reads the object from stdin')
    .needs('the name of a tool', '`trunkline tools` lists them')
    .helpGroup(GROUPS.tools)
    .summary('call one tool and print its result')
    .description(
      `Calls one tool and prints its result: text as text, everything else as JSON. The message of a failed tool goes to stderr. Uses the hub if it runs; otherwise starts the server for this call.

KEY=TEXT passes text, or a number, true, false, an array or an object where the tool asks for one. The same KEY several times makes an array. KEY:=JSON passes the JSON value as it is.`,
    )
    .option('--json', 'print the result as the server sent it')
    .option('--view <NAME>', 'as a client with this view sees it')
    .option('--alone', 'start a server for this call, also if the hub runs')
    .example('trunkline call trunkline__status')
    .example('trunkline call files.read_text_file path=notes.txt head:=5')
    .example(`trunkline call files__read_text_file '{"path": "notes.txt"}'`)
    .example('trunkline call memory__create_entities - < entities.json')
    .example(`trunkline call files__list_directory '{"path": "."}' --json`)
    .runs<{ json: true; alone: true }>(async ({ settings, words: [name = '', ...words], options }) => {
      const { call } = await import('./calls/call.js');
      return await call(settings, { name, words, isJson: options.json === true, isAlone: options.alone === true });
    });
