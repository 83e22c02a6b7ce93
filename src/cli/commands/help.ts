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
    .option('--man', 'print the manual page of all commands, for `man`')
    .example('trunkline help check', 'trunkline help hub restart')
    .example('trunkline help --man > ~/.local/share/man/man1/trunkline.1')
    .runs<{ man: true }>(async ({ words, options }) => {
      if (options.man === true) {
        const { manPage } = await import('../man-page.js');
        await print(manPage(program).trimEnd());
        return 0;
      }
      const { command, named } = program.find(words);
      const unknown = words[named];
      if (unknown !== undefined) throw unknownCommand(command, unknown);
      await print(helpText(command, lookOf(process.stdout)));
      return 0;
    });
