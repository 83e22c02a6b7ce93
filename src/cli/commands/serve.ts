import { UsageError } from '../../errors/usage-error.js';
import { type DefineCommand, GROUPS } from '../command.js';

/** For its help and its mistakes: a command line that asks to serve is carried out before this program is loaded. */
export const serveCommand: DefineCommand = (program) =>
  program
    .command('serve')
    .helpGroup(GROUPS.serving)
    .summary('serve an MCP client over stdin and stdout')
    .description(
      `Serves an MCP client over stdin and stdout until the client closes stdin or a signal comes. This is the command to register in an MCP client. With \`gateway: { hub: auto }\` in the configuration, its servers run in a background process (the hub), which the first client starts and all clients use; otherwise each client starts servers of its own. With --http it serves many clients over Streamable HTTP at /mcp instead: on the loopback interface and with a token by default.`,
    )
    .option('--view <NAME>', 'show the client this view of the configuration')
    .option('--no-hub', 'start servers of its own for this client')
    .option('--record <FILE>', 'record all messages to this file; implies --no-hub')
    .option('--max <SIZE>', 'with --record: keep the newest messages, SIZE in all (100MiB)')
    .option('--http <[HOST:]PORT>', 'serve HTTP; without HOST on both loopback addresses')
    .option('--stdio', 'with --http: also serve stdin and stdout')
    .option('--no-auth', 'require no token; only on loopback addresses')
    .option(
      '--allowed-host <HOST>',
      'accept this Host header too, with its port; repeatable. Required for addresses that other machines can reach',
    )
    .option('--allowed-origin <URL>', 'accept this Origin header too; repeatable')
    .option('--tls-cert <FILE>', 'serve HTTPS with this certificate (PEM); needs --tls-key')
    .option('--tls-key <FILE>', 'the private key (PEM) of the certificate')
    .example('trunkline', 'trunkline serve --config ~/servers.yaml -v --log-file ~/trunkline.log')
    .example('trunkline --http 7411')
    .runs(async () => {
      // Serving takes all global options but this one: its log is its only output for a person.
      throw new UsageError('`trunkline serve` takes no `--quiet`', 'without `-v` it logs warnings and errors only');
    });
