import { type DefineCommand, GROUPS } from '../command.js';
import { print } from '../output.js';

export const schemaCommand: DefineCommand = (program) =>
  program
    .command('schema')
    .helpGroup(GROUPS.setup)
    .summary('print the JSON Schema of the configuration')
    .description(
      'Prints the JSON Schema of the configuration, with which editors complete keys, describe them and mark mistakes. With --out, writes the schema to a file, and says which line of the configuration refers to it.',
    )
    .option('-o, --out <FILE>', 'write the schema to this file')
    .example('trunkline schema > trunkline.schema.json')
    .example('trunkline schema --out ~/.config/trunkline/trunkline.schema.json')
    .runs<{ out: string }>(async ({ options }) => {
      const { schema } = await import('./config/schema.js');
      const text = await schema(options.out);
      if (text !== undefined) await print(text);
      return 0;
    });
