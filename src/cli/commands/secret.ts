import { type CliCommand, type DefineCommand, GROUPS } from '../command.js';

export const secretCommand: DefineCommand = (program) => {
  const secret = program
    .command('secret')
    .helpGroup(GROUPS.configuration)
    .summary('store, list or remove secrets')
    .description(
      `Secrets of yours, to which a configuration refers with \${secret:NAME}. They are in a file of the data folder that only you can read, or in the keychain of the system.`,
    )
    .example('trunkline secret set GITHUB_TOKEN', 'trunkline secret list');
  define(secret, 'set', 'store a secret; asks for its value, or reads it from stdin', 'the name of the secret');
  define(secret, 'list', 'list the names of the secrets');
  define(secret, 'remove', 'remove a secret', 'the name of the secret');
};

function define(parent: CliCommand, action: string, summary: string, name?: string): void {
  const command = parent.command(action) as CliCommand;
  if (action === 'set') command.option('--keychain', 'in the keychain of the system (macOS and Linux)');
  if (name !== undefined) command.argument('<NAME>', name).needs(name, `write \`trunkline secret ${action} NAME\``);
  command
    .summary(summary)
    .description(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`)
    .example(`trunkline secret ${action}${name === undefined ? '' : ' GITHUB_TOKEN'}`)
    .option('--json', 'print the result as JSON')
    .runs<{ json: true; keychain: true }>(async ({ words, options }) => {
      const { secret } = await import('./config/secret.js');
      return await secret([action, ...words], { isJson: options.json === true, isKeychain: options.keychain === true });
    });
}
