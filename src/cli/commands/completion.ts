import { Argument } from 'commander';
import { type DefineCommand, GROUPS } from '../command.js';
import { valueIn } from '../command-line.js';
import { print } from '../output.js';

export const completionCommand: DefineCommand = (program) => {
  program
    .command('completion')
    .addArgument(new Argument('<SHELL>', 'bash, zsh or fish').choices(['bash', 'zsh', 'fish']))
    .needs('the name of a shell', 'write `trunkline completion bash`, `zsh` or `fish`')
    .helpGroup(GROUPS.setup)
    .summary('print a script that completes commands in a shell')
    .description(
      'Prints a script for your shell. It completes commands, options, the servers of the configuration, and the tools that they listed in an earlier run.',
    )
    .example('source <(trunkline completion bash)      # in ~/.bashrc')
    .example('source <(trunkline completion zsh)       # in ~/.zshrc, after compinit')
    .example('trunkline completion fish > ~/.config/fish/completions/trunkline.fish')
    .runs(async ({ words: [shell = ''] }) => {
      const { COMPLETION_SCRIPTS } = await import('../completion.js');
      await print(COMPLETION_SCRIPTS[shell] ?? '');
      return 0;
    });
  // What the scripts run: prints candidates for the last word, each with a tab and a description.
  program
    .command('complete', { hidden: true })
    .argument('[WORD...]')
    .runs(async ({ words, program: root }) => {
      const { complete } = await import('../completion.js');
      const { configuredNames } = await import('../completion-names.js');
      const settings = { config: valueIn(root, words, 'config'), verbosity: 0, logFile: undefined };
      const candidates = await complete(root, words, configuredNames(settings));
      if (candidates.length > 0) await print(candidates.map(({ value, about }) => `${value}\t${about}`).join('\n'));
      return 0;
    });
};
