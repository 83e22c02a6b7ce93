import type { CodeTable } from './code-entry.js';

/** What can be wrong with the configuration, and with the packages and commands that it names. */
export const CONFIG_CODES = {
  'TL-CONFIG-OK': { level: 'ok', means: 'The configuration is valid.', remedy: 'Nothing to do.' },
  'TL-CONFIG-NOT-FOUND': {
    level: 'fail',
    means: 'There is no configuration file.',
    remedy: 'Create one, or name it with `--config FILE` or TRUNKLINE_CONFIG.',
  },
  'TL-CONFIG-UNREADABLE': {
    level: 'fail',
    means: 'The configuration file cannot be read.',
    remedy: 'Check its path and its permissions.',
  },
  'TL-CONFIG-SYNTAX': {
    level: 'fail',
    means: 'The configuration file is not valid YAML.',
    remedy: 'Correct the line that is named.',
  },
  'TL-CONFIG-INVALID': {
    level: 'fail',
    means: 'The configuration file has a key or a value that Trunkline does not know.',
    remedy: 'Correct the line that is named. `trunkline schema` prints what is allowed.',
  },
  'TL-CONFIG-WARNING': {
    level: 'warn',
    means: 'A setting is accepted and is probably a mistake.',
    remedy: 'Correct the line that is named.',
  },
  'TL-CONFIG-EMPTY': {
    level: 'warn',
    means: 'The configuration has no servers.',
    remedy: 'Add one below `servers`.',
  },
  'TL-CONFIG-SHADOWED': {
    level: 'warn',
    means: 'A second configuration file exists and is not used.',
    remedy: 'Remove one of the files, or name the right one with `--config FILE`.',
  },
  'TL-CONFIG-EXPOSED': {
    level: 'warn',
    means: 'Other users can read a file with secrets.',
    remedy: 'Close it: `chmod 600 FILE`, or `trunkline doctor --fix`.',
  },
  'TL-CONFIG-WRITABLE': {
    level: 'fail',
    means: 'Other users can write the configuration file, and so decide what runs as you.',
    remedy: 'Close it: `chmod go-w FILE`.',
  },
  'TL-SECRET-LITERAL': {
    level: 'warn',
    means: 'The configuration has a value that looks like a credential.',
    remedy: 'Put the value into an environment variable, and write its name in braces after a dollar sign.',
  },
  'TL-VAR-UNSET': {
    level: 'fail',
    means: 'A variable that the configuration refers to is not set.',
    remedy: 'Set it where Trunkline is started, or give it a default with `:-` after its name.',
  },
  'TL-VAR-EMPTY': {
    level: 'warn',
    means: 'A variable of a server is empty.',
    remedy: 'Set it, or remove it from the configuration.',
  },
  'TL-VAR-WHITESPACE': {
    level: 'warn',
    means: 'The value of a variable begins or ends with a space, a line break or a quote.',
    remedy: 'Remove the character; it usually comes from copying, or from a file with Windows line ends.',
  },
  'TL-VAR-PLACEHOLDER': {
    level: 'fail',
    means: 'The value of a variable is still the placeholder of some example.',
    remedy: 'Put the real value there.',
  },
  'TL-COMMAND-NOT-FOUND': {
    level: 'fail',
    means: 'The command of a server does not exist.',
    remedy: 'Install the program, or write its absolute path as `command`.',
  },
  'TL-COMMAND-NOT-EXECUTABLE': {
    level: 'fail',
    means: 'The command of a server is no program that you may run.',
    remedy: 'Make it executable (`chmod +x FILE`), or run it with its interpreter as `command`.',
  },
  'TL-COMMAND-INTERPRETER': {
    level: 'fail',
    means: 'The script of a server has no interpreter, or one that does not exist.',
    remedy: 'Correct its first line, or write the interpreter as `command` and the script into `args`.',
  },
  'TL-COMMAND-LINE': {
    level: 'fail',
    means: '`command` holds a whole command line.',
    remedy: 'Write the program alone as `command`, and the rest of the line into `args`.',
  },
  'TL-ARG-PATH-MISSING': {
    level: 'warn',
    means: 'An argument looks like the path of a file or a folder that does not exist.',
    remedy: 'Correct the path. Relative paths belong to the `cwd` of the server.',
  },
  'TL-SERVER-TWICE': {
    level: 'warn',
    means: 'Two servers run the same program with the same arguments and variables.',
    remedy: 'Remove one of them.',
  },
  'TL-PACKAGE-OK': { level: 'ok', means: 'The packages are installed.', remedy: 'Nothing to do.' },
  'TL-PACKAGE-MISSING': {
    level: 'warn',
    means: 'A package is not installed yet. Its server installs it when it starts.',
    remedy: 'Install it in advance: `trunkline install`.',
  },
  'TL-PACKAGE-DAMAGED': {
    level: 'fail',
    means: 'An installed package lacks files.',
    remedy: 'Install it again: `trunkline install`, or `trunkline doctor --fix`.',
  },
  'TL-PACKAGE-DEPRECATED': {
    level: 'warn',
    means: 'The author of a package says that it should no longer be used.',
    remedy: 'Follow the words of the author; often the package has a new name.',
  },
  'TL-PACKAGE-REMARK': {
    level: 'warn',
    means: 'A package may not work on this machine.',
    remedy: 'See the evidence: it needs another Node, or an install script.',
  },
  'TL-LOCK-UNREADABLE': {
    level: 'fail',
    means: 'The lock file of the packages cannot be used.',
    remedy: 'Correct the file, or remove it to lock the newest accepted versions.',
  },
  'TL-NAMES-LONG': {
    level: 'warn',
    means: 'Names of tools are so long that clients cut or refuse them.',
    remedy: 'Use a shorter key for the server, or deny the tools.',
  },
  'TL-TOOLS-MANY': {
    level: 'warn',
    means: 'More tools are listed than some clients accept.',
    remedy: 'List fewer, with `tools.allow` or `tools.deny` of a server.',
  },
  'TL-TOOLS-UNMARKED': {
    level: 'warn',
    means:
      'Tools whose names sound destructive have no annotations, so that a client cannot know whether to ask first.',
    remedy: 'Deny those that nobody needs with `tools: { deny: [NAME] }`, or tell the authors of the server.',
  },
  'TL-TOOLS-HEAVY': {
    level: 'warn',
    means: 'The list of tools takes more than a tenth of the context of a usual model.',
    remedy: 'List fewer tools of the largest servers, with `tools.allow` or `tools.deny`.',
  },
} as const satisfies CodeTable;
