import { type Argument, Help, type Option } from 'commander';
import type { CliCommand } from './command.js';
import { wordsOf } from './command-line.js';

/** What a shell may insert, and a few words about it. */
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

/** Completes the last word. Returns nothing where a shell knows better, as for the name of a file. */
export async function complete(program: CliCommand, words: readonly string[], names: Names): Promise<Candidate[]> {
  const before = words.slice(0, -1);
  const word = words.at(-1) ?? '';
  const given = wordsOf(program, before);
  const { command, named } = program.find(given);
  if (given.length > 0 && command === program) return [];
  const options = optionsOf(command);
  const previous = options.find(({ long, short }) => before.length > 0 && [long, short].includes(before.at(-1)));
  if (previous?.required) return [];
  const candidates = word.startsWith('-')
    ? options.map(({ long, description }) => ({ value: long ?? '', about: description }))
    : await candidatesFor({ command, given: given.slice(named), word, names });
  return candidates.filter(({ value }) => value.startsWith(word));
}

/** Where the word stands. */
interface Position {
  readonly command: CliCommand;
  /** The earlier words of the command. */
  readonly given: readonly string[];
  readonly word: string;
  readonly names: Names;
}

async function candidatesFor(position: Position): Promise<readonly Candidate[]> {
  const { command, given } = position;
  if (command.commands.length > 0) return commandsOf(command);
  const all = command.registeredArguments;
  const last = all.at(-1);
  const argument = all[given.length] ?? (last?.variadic ? last : undefined);
  return argument === undefined ? [] : await namesFor(argument, position);
}

/** A command gets these by the name of its argument. */
async function namesFor(argument: Argument, { command, given, word, names }: Position): Promise<readonly Candidate[]> {
  if (argument.argChoices !== undefined) return argument.argChoices.map((value) => ({ value, about: '' }));
  switch (argument.name()) {
    case 'SERVER':
      return (await names.servers())
        .filter((server) => !given.includes(server))
        .map((value) => ({ value, about: 'server' }));
    case 'TOOL': {
      // After the key of a server its own names, elsewhere with the key.
      const [server] = given;
      const servers = server === undefined ? await names.servers() : [server];
      const lists = await Promise.all(
        servers.map(async (key) =>
          (await names.tools(key)).map((tool) => (server === undefined ? `${key}.${tool}` : tool)),
        ),
      );
      return lists.flat().map((value) => ({ value, about: 'tool' }));
    }
    case 'COMMAND':
      return commandsOf(command.root.find(given).command).filter(({ value }) => value.startsWith(word));
    default:
      return [];
  }
}

function commandsOf(command: CliCommand): readonly Candidate[] {
  return new Help().visibleCommands(command).map((each) => ({ value: each.name(), about: each.summary() }));
}

function optionsOf(command: CliCommand): Option[] {
  const own = command.options.filter(({ hidden }) => !hidden);
  return [...own, ...(command.parent === null ? [] : optionsOf(command.parent as CliCommand))];
}

/** The script of each shell. It runs `trunkline complete`, so that it stays right when Trunkline is updated. */
export const COMPLETION_SCRIPTS: Readonly<Record<string, string>> = {
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
