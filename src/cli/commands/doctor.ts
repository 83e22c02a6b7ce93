import { type DefineCommand, GROUPS } from '../command.js';

export const doctorCommand: DefineCommand = (program) =>
  program
    .command('doctor')
    .argument('[SERVER...]', 'keys of servers; without them, all servers')
    .helpGroup(GROUPS.setup)
    .summary('find out why something does not work, and how to mend it')
    .description(
      `Checks everything between your clients and your servers: Node, npm, folders and limits of this machine, the configuration with its variables, commands and packages, the entries of clients, and the processes of Trunkline. Then starts every server once, or asks the running hub, and runs what each client has registered as that client runs it. Each finding has a stable code, its evidence, and what to do. Changes nothing, unless --fix is given. Shows no secrets.

--fix changes the modes of secret files, removes files that killed runs have left, ends their processes, installs damaged packages again, and takes servers that Trunkline runs, too, out of the files of clients; \`trunkline undo\` puts them back. Everything else is named as a command. Exit code 1 means that there is at least one finding of the level fail.`,
    )
    .option('--json', 'print the findings as JSON')
    .option('--fix', 'mend what is safe to mend')
    .option('--no-start', 'start neither servers nor the commands of clients')
    .option('--offline', 'do not use the network')
    .option('--codes', 'list all codes and what they mean')
    .example('trunkline doctor', 'trunkline doctor github --no-start', 'trunkline doctor --json > report.json')
    .runs<{ json: true; fix: true; start: boolean; offline: true; codes: true }>(
      async ({ settings, words, options }) => {
        const { doctor } = await import('./doctor/doctor.js');
        const { json = false, fix = false, start = true, offline = false, codes = false } = options;
        return await doctor(settings, {
          ...{ servers: words, isJson: json, isFixing: fix, isStartless: !start },
          ...{ isOffline: offline, isCodes: codes },
        });
      },
    );
