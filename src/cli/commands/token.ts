import { type DefineCommand, GROUPS } from '../command.js';

export const tokenCommand: DefineCommand = (program) =>
  program
    .command('token')
    .helpGroup(GROUPS.setup)
    .summary('print the token for HTTP clients')
    .description(
      'Prints the bearer token for clients of `trunkline serve --http`, and creates the token if there is none. The token is stored in a file that only you can read.',
    )
    .option('--json', 'print the token and its file as JSON')
    .example('trunkline token', `curl -H "Authorization: Bearer $(trunkline token)" http://localhost:7411/mcp`)
    .runs<{ json: true }>(async ({ options }) => {
      const { token } = await import('./serve/token.js');
      return await token(options.json === true);
    });
