import { type DefineCommand, GROUPS } from '../command.js';
import { helpText } from '../command-help.js';
import { unknownCommand } from '../command-line.js';
import { print } from '../output.js';
import { lookOf } from '../terminal.js';

export const helpCommand: DefineCommand = (program) =>
  program
    .command('help')
    .argument('[COMMAND...]', 'the command; without it, the overview')
    .helpGroup(GROUPS.setup)
    .summary('show help for a command')
    .description('Shows the help of a command: what it does, its arguments and options, and examples.')
    .example('trunkline help check', 'trunkline help hub restart')
    .runs(async ({ words }) => {
      const { command, named } = program.find(words);
      const unknown = words[named];
      if (unknown !== undefined) throw unknownCommand(command, unknown);
      await print(helpText(command, lookOf(process.stdout)));
      return 0;
    });
