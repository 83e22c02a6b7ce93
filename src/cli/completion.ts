import { CommanderError, Help, type Option } from 'commander';
import { readConfig } from '../app/read-config.js';
import { cachedToolNames } from '../state/catalogue-cache.js';
import { catalogueFolder } from '../state/user-files.js';
import type { CliCommand, Invocation } from './command.js';
import { print } from './output.js';

/** A word that a shell may insert, and a few words about it. */
export interface Candidate {
  readonly value: string;
  readonly about: string;
}

/** Looks up names for placeholders of arguments. */
export interface Names {
  servers(): Promise<readonly string[]>;
  /** The server's own names of its tools. */
  tools(server: string): Promise<readonly string[]>;
}

/** Servers of the configuration, and tools that they listed in an earlier run. Without a configuration there are none. */
function configuredNames(config: string | undefined): Names {
  return {
    servers: async () => {
      try {
        return (await readConfig({ config, verbosity: 0, logFile: undefined })).servers.map(({ key }) => key);
      } catch {
        // A shell cannot show a message here; the command itself reports the mistake.
        return [];
      }
    },
    tools: async (server) => cachedToolNames(catalogueFolder(), server) ?? [],
  };
}

/** Prints the candidates for the last word, each with a tab and a description, for the scripts below. */
export async function printCandidates(program: CliCommand, { words }: Invocation): Promise<number> {
  const candidates = await complete(program, words, configuredNames);
  if (candidates.length > 0) await print(candidates.map(({ value, about }) => `${value}\t${about}`).join('\n'));
  return 0;
}

export async function printScript({ words: [shell = ''] }: Invocation): Promise<number> {
  await print(COMPLETION_SCRIPTS[shell] ?? '');
  return 0;
}

/** Completes the last word. Returns nothing where the shell completes by itself, as for file names. */
export async function complete(
  program: CliCommand,
  words: readonly string[],
  namesIn: (config: string | undefined) => Names,
): Promise<Candidate[]> {
  const word = words.at(-1) ?? '';
  const found = parsed(program, words.slice(0, -1));
  if (found === undefined) return [];
  const { command } = found;
  const candidates = word.startsWith('-')
    ? optionsOf(command).map(({ long, description }) => ({ value: long ?? '', about: description }))
    : command.commands.length > 0
      ? commandsOf(command)
      : await argumentsFor(found, namesIn(program.opts().config));
  return candidates.filter(({ value }) => value.startsWith(word));
}

/** The command that these words call, and its arguments. `undefined` if a value of an option is next, or for a mistake. */
function parsed(command: CliCommand, words: readonly string[]): Position | undefined {
  try {
    command.configureOutput({ writeOut: () => {}, writeErr: () => {} });
    const { operands, unknown } = command.parseOptions([...words]);
    const [name, ...rest] = operands;
    if (name === undefined || command.commands.length === 0) return { command, given: [...operands, ...unknown] };
    const next = command.commands.find((each) => each.name() === name) as CliCommand | undefined;
    return next && parsed(next, [...rest, ...unknown]);
  } catch (error) {
    if (error instanceof CommanderError) return undefined;
    throw error;
  }
}

interface Position {
  readonly command: CliCommand;
  readonly given: readonly string[];
}

async function argumentsFor({ command, given }: Position, names: Names): Promise<readonly Candidate[]> {
  const all = command.registeredArguments;
  const last = all.at(-1);
  const argument = all[given.length] ?? (last?.variadic ? last : undefined);
  if (argument?.argChoices !== undefined) return argument.argChoices.map((value) => ({ value, about: '' }));
  switch (argument?.name()) {
    case 'SERVER':
      return (await names.servers())
        .filter((server) => !given.includes(server))
        .map((value) => ({ value, about: 'server' }));
    case 'TOOL': {
      // After the key of a server, the server's own names of its tools; elsewhere, `KEY.TOOL`.
      const [server] = given;
      const servers = server === undefined ? await names.servers() : [server];
      const named = (key: string) => (tool: string) => (server === undefined ? `${key}.${tool}` : tool);
      const lists = await Promise.all(servers.map(async (key) => (await names.tools(key)).map(named(key))));
      return lists.flat().map((value) => ({ value, about: 'tool' }));
    }
    case 'COMMAND': {
      const position = parsed(command.root, given);
      return position === undefined ? [] : commandsOf(position.command);
    }
    default:
      return [];
  }
}

function commandsOf(command: CliCommand): readonly Candidate[] {
  return new Help().visibleCommands(command).map((each) => ({ value: each.name(), about: each.summary() }));
}

function optionsOf(command: CliCommand): Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
}

/** The script of each shell. It runs `trunkline complete`, so that it stays right when Trunkline is updated. */
const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# bash completion for trunkline. Load it with: source <(trunkline completion bash)
_trunkline() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _trunkline trunkline`,
  zsh: `#compdef trunkline
# zsh completion for trunkline. Load it with: source <(trunkline completion zsh)
_trunkline() {
  local line
  local -a candidates
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n "$line" ]] && candidates+=("\${line%%$'\\t'*}:\${line#*$'\\t'}")
  done
  if (( \${#candidates} )); then
    _describe trunkline candidates
  else
    _files
  fi
}
# In a folder of fpath this file is the function itself, and runs at the first Tab.
if [[ "\${funcstack[1]}" == _trunkline ]]; then
  _trunkline "$@"
else
  compdef _trunkline trunkline
fi`,
  fish: `# fish completion for trunkline. Load it with: trunkline completion fish | source
function __trunkline_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] complete -- $words[2..-1] "$current" 2>/dev/null
end
complete -c trunkline -f -a '(__trunkline_complete)'
complete -c trunkline -n 'test -z "$(__trunkline_complete)"' -F`,
};
